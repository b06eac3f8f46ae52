// Fetches each address as the pages do, with a time limit, and prints what is said of it.
// Arguments: the folder of the pages' scripts, the limit in milliseconds, the addresses.
import { pathToFileURL } from "node:url";

const [folder, limitMs, ...addresses] = process.argv.slice(2);
globalThis.document = { addEventListener() {} };
const { fetchJson } = await import(pathToFileURL(`${folder}/chart.js`));
const said = (address) => fetchJson(address, Number(limitMs)).then(JSON.stringify, (error) => error.message);
process.stdout.write(JSON.stringify(await Promise.all(addresses.map(said))), () => process.exit(0));

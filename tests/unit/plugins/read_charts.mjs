// Draws charts as a page does, by the ECharts that comes with the pages, on a canvas that shows nothing.
// Arguments: the folder of the pages' scripts, and the script of the page. Standard input: its document, a chart's data
// by the chart's kind. Prints what each chart draws, and for each step of the right arrow key what is said and shown.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const HIDDEN_AFTER_MS = 150; // a tooltip goes 100 ms after it was hidden
const [folder, script] = process.argv.slice(2);
const data = JSON.parse(readFileSync(0, "utf8"));
const own = { measureText: (text) => ({ width: 7 * text.length }) };
const context = new Proxy({}, { get: (set, name) => set[name] ?? own[name] ?? (() => {}) });
const bare = () => ({ style: {}, width: 10, height: 10, getContext: () => context, remove() {} });
const pause = (ms) => new Promise((then) => setTimeout(then, ms));

function chartElement(kind) {
  const spoken = { textContent: "" };
  return {
    ...bare(), kind, spoken, width: 900, height: 400, clientWidth: 900, clientHeight: 400, dataset: { chart: kind, source: "data.json" },
    parentElement: { querySelector: () => spoken }, addEventListener(_, heard) { this.press = (key) => heard({ key, preventDefault() {} }); },
    classList: { add() {} }, replaceChildren() {},
  };
}

const elements = Object.keys(data).map(chartElement);
globalThis.window = globalThis; // or else ECharts draws no tooltips
Object.defineProperty(globalThis, "navigator", { value: { userAgent: "Chrome" } });
globalThis.addEventListener = () => {};
globalThis.document = {
  documentElement: bare(), body: { appendChild: (element) => element }, createElement: bare, addEventListener() {},
  querySelectorAll: () => elements, querySelector: () => elements[0],
};
globalThis.getComputedStyle = () => ({ color: "rgb(1, 2, 3)" });
globalThis.ResizeObserver = class { observe() {} };
globalThis.fetch = async () => ({ ok: true, json: async () => data });
const vendor = readdirSync(`${folder}/vendor`).find((name) => name.startsWith("echarts-"));
globalThis.echarts = createRequire(import.meta.url)(`${folder}/vendor/${vendor}`);

await import(pathToFileURL(`${folder}/${script}`));
while (!elements.every((each) => each.press)) {
  const failed = elements.find((each) => each.textContent);
  if (failed) throw new Error(`${failed.kind}: ${failed.textContent}`);
  await pause(5);
}

async function read(element) {
  const chart = echarts.getInstanceByDom(element);
  const steps = [];
  for (;;) {
    element.press("ArrowRight");
    const said = element.spoken.textContent;
    if (said === steps.at(-1)?.said) {
      const { xAxis, yAxis } = chart.getOption();
      return { kind: element.kind, steps, axes: [...xAxis, ...yAxis].map(({ name }) => name) };
    }
    await pause(HIDDEN_AFTER_MS);
    const tips = chart.getZr().storage.getRoots().filter((each) => each.type === "text" && !each.ignore && !each.invisible);
    steps.push({ said, shown: tips.map((each) => each.style.text.replaceAll("\n", ", ")).join() });
  }
}

const found = await Promise.all(elements.map(read));
process.stdout.write(JSON.stringify(Object.fromEntries(found.map(({ kind, ...rest }) => [kind, rest]))), () => process.exit(0));

// A live run, asked for every two seconds for as long as the page is looked at.
import { fetchJson, number } from "./chart.js";

const EVERY_MS = 2000;
const LIMIT_MS = 20_000; // of an answer; then the page says so, and asks again
const live = document.getElementById("live");
const say = (name, text) => {
  const place = document.querySelector(`[data-live="${name}"]`);
  if (place.textContent !== text) place.textContent = text;
};
const whole = (value, unit = "") => number(value == null ? null : Math.round(value), unit);

function hostElement({ name, role, domains, state, cpu_cores: cores, rss_bytes: bytes }) {
  const element = Object.assign(document.createElement("div"), { className: "host" });
  const badge = Object.assign(document.createElement("span"), { className: `badge ${state}`, textContent: state });
  const where = Object.assign(document.createElement("small"), { className: "muted", textContent: domains.join(", ") || role });
  const uses = Object.assign(document.createElement("small"), { className: "uses", textContent: `CPU ${number(cores, "cores")}, memory ${number(bytes == null ? null : bytes / 2 ** 20, "MiB")}` });
  element.append(Object.assign(document.createElement("strong"), { textContent: name }), " ", badge, " ", where, uses);
  return element;
}

const noHosts = () => Object.assign(document.createElement("p"), { className: "muted", textContent: "No hosts." });

/** The partitions that are in one state, or have a copy, with their number. */
function partitionsElement([state, names]) {
  const element = document.createElement("div");
  const term = document.createElement("dt");
  term.append(Object.assign(document.createElement("span"), { className: `badge ${state}`, textContent: state }), ` ${names.length}`);
  element.append(term, Object.assign(document.createElement("dd"), { textContent: names.join(", ") }));
  return element;
}

function showPartitions({ partitions: states, copied }) {
  const byState = new Map();
  for (const [name, state] of Object.entries(states)) byState.set(state, [...(byState.get(state) ?? []), name]);
  const section = document.getElementById("partitions");
  section.hidden = byState.size === 0;
  const copies = Object.entries(copied).map(([name, worker]) => `${name} on ${worker}`);
  const rows = [...[...byState].sort(), ...(copies.length ? [["copied", copies]] : [])];
  section.querySelector("dl").replaceChildren(...rows.map(partitionsElement));
}

function stepClock({ state, took_s: took, usual_s: usual }) {
  if (state === "left out") return state;
  if (took == null) return `about ${whole(usual, "s")}`;
  if (state === "done") return whole(took, "s");
  return state === "cut short" ? `${state} after ${whole(took, "s")}` : `${whole(took)} s of about ${whole(usual, "s")}`;
}

function stepElement({ name, does, state, ...times }) {
  const clock = stepClock({ state, ...times });
  const element = Object.assign(document.createElement("li"), { className: state.replace(" ", "-") });
  const small = Object.assign(document.createElement("small"), { className: "muted", textContent: `(${clock})` });
  element.append(Object.assign(document.createElement("strong"), { textContent: `${name}:` }), ` ${does} `, small);
  return element;
}

function show(state) {
  const { steps, awaited, awaited_s: since, left, is_late: late } = state.progress;
  say("whole-left", `${left} left`);
  say("awaited", awaited ? `waiting for ${awaited}` : "");
  say("awaited-for", awaited ? `(${whole(since, "s")})` : "");
  say("late", late ? "longer than usual" : "");
  document.getElementById("steps").replaceChildren(...steps.map(stepElement));
  const { next_fault: next, faults } = state;
  say("phase", state.aborted ? "aborted" : state.phase);
  // If its process has died, nobody is left to end an aborted run: a second abort does.
  document.querySelector("a.abort")?.toggleAttribute("hidden", state.aborted && !state.abandoned);
  document.getElementById("abandoned").hidden = !state.abandoned;
  say("clock", `${whole(state.elapsed_s)} of ${whole(state.window_s, "s")}`);
  document.getElementById("progress").value = state.elapsed_s;
  say("left", whole(state.left_s, "s"));
  say("next", next ? `in ${whole(next.in_s, "s")}` : "–");
  say("next-what", next ? `${next.kind} of ${next.targets.join(", ")}` : "");
  say("faults", `${faults.injected} of ${whole(faults.planned)}`);
  say("healed", `${faults.healed} undone`);
  say("lag", whole(state.lag_records));
  say("rate", whole(state.records_per_s));
  say("committed", whole(state.committed_records));
  say("doing", state.doing);
  const byDomain = [...state.hosts].sort((a, b) => `${a.domains}`.localeCompare(`${b.domains}`));
  document.getElementById("domains").replaceChildren(...(byDomain.length ? byDomain.map(hostElement) : [noHosts()]));
  showPartitions(state);
}

async function look() {
  try {
    if (!document.hidden) {
      const state = await fetchJson(live.dataset.source, LIMIT_MS);
      if (state.finished) return location.replace(live.dataset.finished);
      show(state);
      say("problem", "");
    }
  } catch (error) {
    say("problem", error.message);
  }
  setTimeout(look, EVERY_MS);
}

look();

// What every chart has: drawn by ECharts in the colours of the page, drawn again when they change, readable by keyboard.
// ECharts is in the window (vendor/); its tooltips are drawn on the canvas, since the page's policy forbids inline styles.

const FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const large = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const NARROW_PX = 620;

export const number = (value, unit = "") => (value == null ? "–" : `${(Math.abs(value) < 1000 ? small : large).format(value)}${unit && ` ${unit}`}`);

/** A colour of the style sheet by its variable's name, as the present theme has it; a chart asks for dozens. */
function colour(name) {
  if (!colours.has(name)) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return colours.get(name);
}
const colours = new Map();
document.addEventListener("theme", () => colours.clear());

const axisStyle = () => ({
  nameTextStyle: { color: colour("muted"), fontSize: 12 },
  axisLabel: { color: colour("muted"), hideOverlap: true },
  axisLine: { lineStyle: { color: colour("line") } },
  axisTick: { lineStyle: { color: colour("line") } },
  splitLine: { lineStyle: { color: colour("line") } },
});

/** An axis in the page's colours. */
export const axis = (rest) => ({ type: "value", nameLocation: "middle", ...axisStyle(), ...rest });

export const legend = (rest = {}) => ({
  type: "scroll", top: 0, left: 0, right: 0, icon: "roundRect", itemWidth: 14, itemHeight: 8,
  textStyle: { color: colour("text") }, pageTextStyle: { color: colour("muted") }, pageIconColor: colour("text"),
  inactiveColor: colour("line"), ...rest,
});

export const tooltip = (rest) => ({
  renderMode: "richText", confine: true, backgroundColor: colour("card"), borderColor: colour("line"),
  textStyle: { color: colour("text"), fontSize: 13, fontFamily: FONT }, ...rest,
});

/**
 * Draw a chart in an element.
 *
 * `build({ colour, narrow })` returns `{ option, count, say, shownBy, along, open }`: what ECharts draws, how many points
 * can be read one after the other, and of each point: its text, the series and the index in its data that show it, its
 * value on the axis of the slider, and what Enter does there. By default the first series shows all, by their numbers.
 */
export function mount(element, build) {
  const chart = echarts.init(element, null, { renderer: "canvas" });
  let built;
  let drawnNarrow;
  const draw = () => {
    drawnNarrow = element.clientWidth < NARROW_PX;
    built = build({ colour, narrow: drawnNarrow });
    chart.setOption({ animation: false, textStyle: { fontFamily: FONT }, ...built.option }, true);
  };
  draw();
  new ResizeObserver(() => {
    if (chart.getWidth() === element.clientWidth && chart.getHeight() === element.clientHeight) return; // as when it begins
    chart.resize();
    if (element.clientWidth < NARROW_PX !== drawnNarrow) draw();
  }).observe(element);
  document.addEventListener("theme", draw);
  chart.on("click", (event) => built.open?.(event.dataIndex));
  readByKeyboard(chart, element, () => built);
  return chart;
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, PageUp: -10, PageDown: 10 };

/** Arrows go from point to point, Home and End to the ends, Escape leaves; what is there is shown and said. */
function readByKeyboard(chart, element, built) {
  const spoken = element.parentElement.querySelector("[aria-live]");
  let at = -1;
  element.addEventListener("keydown", (event) => {
    const { count, say, shownBy = (i) => [0, i], along = (i) => i, open } = built();
    if (event.key === "Escape") chart.dispatchAction({ type: "hideTip" });
    if (event.key === "Enter" && at >= 0) open?.(at);
    const goal = { Home: 0, End: count - 1 }[event.key] ?? at + STEPS[event.key];
    if (!Number.isInteger(goal) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    at = Math.min(Math.max(goal, 0), count - 1);
    const [seriesIndex, dataIndex] = shownBy(at);
    bringIntoView(chart, along(at));
    chart.dispatchAction({ type: "hideTip" }); // of the point before: this one may have nothing to point at
    chart.dispatchAction({ type: "showTip", seriesIndex, dataIndex });
    if (spoken) spoken.textContent = say(at).replaceAll("\n", ", ");
  });
}

/** Move the part of an axis that a slider shows, as little as it takes to show a value; it stays as long. */
function bringIntoView(chart, value) {
  const [slider] = chart.getOption().dataZoom ?? [];
  if (!slider) return;
  const { startValue: from, endValue: to } = slider;
  const by = Math.min(value - from, 0) + Math.max(value - to, 0);
  if (by) chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, startValue: from + by, endValue: to + by });
}

/** Fetch a JSON document of this site, by default however long that takes; throws an `Error` with a line for readers. */
export async function fetchJson(address, limitMs = null) {
  const signal = limitMs == null ? null : AbortSignal.timeout(limitMs);
  const failed = ({ name, message }) => {
    if (name === "TimeoutError") throw new Error(`The server did not answer in ${number(limitMs / 1000, "s")}.`);
    throw new Error(name === "TypeError" ? "The server cannot be reached." : `The data cannot be read (${message}).`);
  };
  const answer = await fetch(address, { headers: { Accept: "application/json" }, signal }).catch(failed);
  if (!answer.ok) throw new Error(answer.status === 401 ? "Your login has expired: load the page again." : `The data cannot be had (${answer.status}).`);
  return answer.json().catch(failed);
}

/**
 * Draw every chart of the page whose kind is among `builders`, all of which read the same document.
 *
 * Where the document lacks a chart, its figure goes; if it cannot be had, the figures say so. `data-drawn-ms` tells how
 * long it took from the request for the data.
 */
export async function drawAll(builders) {
  const elements = [...document.querySelectorAll("[data-chart]")].filter((each) => each.dataset.chart in builders);
  const documents = new Map();
  for (const element of elements) {
    const began = performance.now();
    const source = element.dataset.source;
    if (!documents.has(source)) documents.set(source, fetchJson(source));
    try {
      const data = (await documents.get(source))[element.dataset.chart];
      if (!data) {
        element.closest("figure").remove();
        continue;
      }
      await new Promise((then) => setTimeout(then)); // so that the chart before this one can be seen
      element.replaceChildren();
      const chart = mount(element, builders[element.dataset.chart](data));
      chart.on("finished", () => (element.dataset.drawnMs ??= Math.round(performance.now() - began)));
    } catch (error) {
      element.textContent = error.message;
      element.classList.add("unavailable");
    }
  }
}

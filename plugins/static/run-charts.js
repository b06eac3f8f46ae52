// The charts of one run.
import { axis, drawAll, legend, number, tooltip } from "./chart.js";

const PHASES = { detect: "detect", restart: "restart", restore: "restore", catch_up: "catch-up" };
const SHADE = 0.45; // how opaque a phase is where it lies behind a line
/** A line at each fault that took effect. */
const faultLines = (faults, colour) => ({ silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colour("fault"), type: "solid", width: 1 }, data: faults.filter(({ outcome, at_s: at }) => outcome === "injected" && at != null).map(({ at_s: at }) => ({ xAxis: at })) });
/** Pictures for legends where several series have one colour: they look as what they name. */
const ICONS = {
  solid: "path://M0,0h24v2h-24z", dashed: "path://M0,0h6v2h-6zM9,0h6v2h-6zM18,0h6v2h-6z", area: "roundRect",
  dotted: "path://M0,0h2v2h-2zM4.4,0h2v2h-2zM8.8,0h2v2h-2zM13.2,0h2v2h-2zM17.6,0h2v2h-2zM22,0h2v2h-2z",
  diamond: "path://M0,-5L5,0L0,5L-5,0z", triangle: "path://M0,-5L5,4L-5,4z", interval: "path://M0,0h10v2h-4v6h4v2h-10v-2h4v-6h-4z", dash: "path://M0,0h14v3h-14z",
};
const legendOf = (looks) => legend({ itemWidth: 24, data: Object.entries(looks).map(([name, look]) => ({ name, icon: ICONS[look] })) });
const all = (names, look) => Object.fromEntries(names.map((name) => [name, look]));
/** What has no series of its own, for the legend. */
const named = (name, itemStyle) => ({ name, type: "line", data: [], itemStyle });

/** U by eq. 10 over T, with what was measured and predicted at the T that was run, and the optimum. */
const utilization = (data) => ({ colour }) => {
  const { run, optimum } = data;
  const points = data.intervals_s.map((interval, i) => [interval, data.expected[i]]);
  const marked = (name, point, symbol, size, shade) => ({
    name, type: "scatter", data: point[1] == null ? [] : [point], symbol, symbolSize: size, z: 5,
    itemStyle: { color: colour(shade), borderColor: colour("page"), borderWidth: 1.5 }, tooltip: { trigger: "item", formatter: name },
  });
  const arms = run.low == null ? [] : [[run.interval_s, run.low], [run.interval_s, run.high]];
  const say = (i) => `T = ${number(points[i][0], "s")}\nU = ${number(points[i][1])} expected by eq. 10`;
  const own = {
    measured: `measured ${number(run.measured)} at T = ${number(run.interval_s, "s")}`,
    predicted: `predicted ${number(run.predicted)}` + (run.low == null ? "" : `, ${number(run.low)} to ${number(run.high)}`),
    optimal: optimum && `best ${number(optimum.expected)} at T* = ${number(optimum.interval_s, "s")}`,
  };
  const series = [
    { name: "expected by eq. 10", type: "line", data: points, symbol: "none", lineStyle: { width: 1.6 }, itemStyle: { color: colour("model") } },
    { name: own.predicted, type: "line", data: arms, symbol: "rect", symbolSize: [16, 2], lineStyle: { width: 2 }, itemStyle: { color: colour("model") }, tooltip: { show: false } },
    marked(own.predicted, [run.interval_s, run.predicted], "circle", 8, "model"),
    marked(own.measured, [run.interval_s, run.measured], "diamond", 13, "measured"),
  ];
  if (optimum) series.push(marked(own.optimal, [optimum.interval_s, optimum.expected], "triangle", 13, "model"));
  return {
    count: points.length, say,
    option: {
      grid: { left: 56, right: 20, top: 62, bottom: 46 },
      legend: { ...legendOf({ "expected by eq. 10": "solid", [own.predicted]: "interval", [own.measured]: "diamond", ...(optimum ? { [own.optimal]: "triangle" } : {}) }), type: "plain" },
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ type: "log", name: "checkpoint interval T [s]", nameGap: 28, min: "dataMin", max: "dataMax", axisLabel: { ...axis({}).axisLabel, formatter: (value) => number(value) } }),
      yAxis: axis({ name: "utilization U", nameGap: 38, min: 0, max: 1 }),
      series,
    },
  };
};

const EVENTS = [
  { name: "checkpoint", shade: "checkpoint", symbol: "rect", size: [2, 10] },
  { name: "recovered", shade: "phase-restart", symbol: "triangle", size: 10 },
  { name: "detected", shade: "phase-detect", symbol: "diamond", size: 11 },
  { name: "fault", shade: "fault", symbol: "pin", size: 16 },
];

/** What happened, by kind: moments [s] and texts. */
function happenings({ faults, outages, checkpoints }) {
  const known = (name, text) => outages.filter((each) => each[name] != null).map((each) => [each[name], text(each)]);
  return {
    checkpoint: checkpoints.at_s.map((at, i) => [at, `checkpoint, ${number(checkpoints.took_s[i], "s")}`]),
    recovered: known("ready", (each) => `recovered, ${number(each.ready - each.death, "s")} after the fault`),
    detected: known("notice", (each) => `detected, ${number(each.notice - each.death, "s")} after the fault`),
    fault: faults.map((each) => [each.at_s, `${each.kind} of ${each.targets}${each.outcome === "injected" ? "" : ` (${each.outcome})`}`]),
  };
}

const TENTATIVE = ["accuracy", "accuracy, lacked the same only in part", "output fidelity predicted"];
const NOT_CORRECTED = "tentative, not yet corrected";

/** The accuracy of each window with tentative output at its end, beside what is predicted for it. */
function tentativeSeries({ windows, spans }, panel, colour) {
  const points = (values, wanted = () => true) => windows.end_s.map((end, i) => [end, values[i], i]).filter(([, , i]) => wanted(i));
  const scatter = (name, data, shade, rest) => ({ name, type: "scatter", xAxisIndex: panel, yAxisIndex: panel, data, itemStyle: { color: colour(shade) }, ...rest });
  const hollow = { color: colour("card"), borderColor: colour("measured"), borderWidth: 1.5 };
  return [
    scatter(TENTATIVE[0], points(windows.accuracy, (i) => windows.throughout[i]), "measured", { symbol: "diamond", symbolSize: 9, markArea: tentativeArea(spans, colour) }),
    scatter(TENTATIVE[1], points(windows.accuracy, (i) => !windows.throughout[i]), "measured", { symbol: "diamond", symbolSize: 9, itemStyle: hollow }),
    scatter(TENTATIVE[2], points(windows.predicted), "model", { symbol: "rect", symbolSize: [9, 3] }),
  ];
}

const tentativeArea = (spans, colour) => ({ silent: true, itemStyle: { color: colour("tentative"), opacity: 0.2 }, data: spans.map(([from, to]) => [{ xAxis: from }, { xAxis: to }]) });

/** The windows with tentative output that end from this second on, before another. */
function tentativeTexts({ windows }, from, to) {
  const at = windows.end_s.flatMap((end, i) => (end >= from && end < to ? [i] : []));
  return at.map((i) => `accuracy ${number(windows.accuracy[i])} of ${number(windows.exact[i], "results")}, predicted ${number(windows.predicted[i])}; corrected ${windows.corrected_s[i] == null ? "never" : `at ${number(windows.corrected_s[i], "s")}`}`);
}

/** Throughput, latency and lag by second on one axis of time, what tentative output was worth, and what happened. */
const timeline = (data) => ({ colour, narrow }) => {
  const events = happenings(data);
  const left = narrow ? 74 : 84;
  const { tentative } = data;
  const panels = ["records/s", "latency [s]", "lag [records]", ...(tentative ? ["accuracy"] : [])];
  const last = panels.length;
  const grids = [[40, 170], [242, 110], [384, 110], ...(tentative ? [[526, 110]] : []), [tentative ? 668 : 526, 84]];
  const column = (values, seconds = data.second) => seconds.map((second, i) => [second, values[i]]);
  const line = (name, panel, values, shade, rest = {}) => ({
    name, type: "line", xAxisIndex: panel, yAxisIndex: panel, data: values, symbol: "none", lineStyle: { width: 1.5 }, itemStyle: { color: colour(shade) }, ...rest,
  });
  const areas = data.phases.map(({ phase, begin_s, end_s }) => [{ xAxis: begin_s, itemStyle: { color: colour(`phase-${phase}`), opacity: SHADE } }, { xAxis: end_s }]);
  const marks = { markArea: { silent: true, data: areas }, markLine: faultLines(data.faults, colour) };
  const seen = new Set(data.phases.map(({ phase }) => phase));
  const phases = Object.keys(PHASES).filter((phase) => seen.has(phase));
  const { latency } = data;
  const at = new Map(latency.second.map((second, i) => [Math.round(second), i]));
  const step = data.second.length > 1 ? data.second[1] - data.second[0] : 1;
  const say = (i) => {
    const second = data.second[i];
    const wait = at.get(Math.round(second));
    const near = Object.values(events).flat().filter(([moment]) => moment >= second && moment < second + step);
    return [
      `${number(second, "s")}`,
      `committed ${data.committed[i] == null ? "unknown: no later commit" : number(data.committed[i], "/s")}, due ${number(data.due[i], "/s")}`,
      `lag ${number(data.lag[i], "records")}`,
      ...(wait === undefined ? [] : [`latency p50 ${number(latency.p50_s[wait], "s")}, p99 ${number(latency.p99_s[wait], "s")}, p99.9 ${number(latency.p999_s[wait], "s")}`]),
      ...near.slice(0, 6).map(([, text]) => text),
      ...(tentative ? tentativeTexts(tentative, second, second + step) : []),
    ].join("\n");
  };
  const nearest = (moment) => {
    const after = data.second.findIndex((second) => second > moment);
    return after < 0 ? data.second.length - 1 : Math.max(after - 1, 0);
  };
  return {
    count: data.second.length, say, shownBy: (i) => [data.committed[i] == null ? 1 : 0, i], along: (i) => data.second[i],
    option: {
      grid: grids.map(([top, height]) => ({ left, right: 20, top, height })),
      legend: legendOf({
        committed: "solid", due: "dashed", p50: "solid", p99: "dashed", "p99.9": "dotted", fault: "solid", ...all(phases.map((phase) => PHASES[phase]), "area"),
        ...(tentative ? { [NOT_CORRECTED]: "area", [TENTATIVE[0]]: "diamond", [TENTATIVE[1]]: "diamond", [TENTATIVE[2]]: "dash" } : {}),
      }),
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: colour("muted") } },
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(nearest(found[0].axisValue)) }),
      xAxis: grids.map((_, i) => axis({ gridIndex: i, min: 0, max: data.window_s, splitLine: { show: false }, axisLabel: { ...axis({}).axisLabel, show: i === last }, axisTick: { show: i === last }, ...(i === last ? { name: "time in the window [s]", nameGap: 28 } : {}) })),
      yAxis: [
        ...panels.map((name, i) => axis({ gridIndex: i, name, nameGap: left - 18, min: 0, ...(i === 3 ? { max: 1 } : {}), splitNumber: 3, axisLabel: { ...axis({}).axisLabel, formatter: (value) => compact.format(value) } })),
        axis({ gridIndex: last, type: "category", data: EVENTS.map(({ name }) => name), axisLabel: { ...axis({}).axisLabel, fontSize: narrow ? 11 : 12, interval: 0 }, splitLine: { show: false } }),
      ],
      dataZoom: [
        { type: "slider", xAxisIndex: "all", bottom: 6, height: 22, borderColor: colour("line"), fillerColor: colour("line"), textStyle: { color: colour("muted") }, labelFormatter: (value) => number(Math.round(value), "s") },
        { type: "inside", xAxisIndex: "all", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
      ],
      series: [
        line("committed", 0, column(data.committed), "measured", { step: "end", ...marks }),
        line("due", 0, column(data.due), "asked", { lineStyle: { width: 1.2, type: "dashed" } }),
        line("p50", 1, column(latency.p50_s, latency.second), "measured", marks),
        line("p99", 1, column(latency.p99_s, latency.second), "measured", { lineStyle: { width: 1.3, type: "dashed" } }),
        line("p99.9", 1, column(latency.p999_s, latency.second), "measured", { lineStyle: { width: 1.3, type: "dotted" } }),
        line("lag", 2, column(data.lag), "measured", marks),
        ...(tentative ? tentativeSeries(tentative, 3, colour) : []),
        ...EVENTS.map(({ name, shade, symbol, size }) => ({
          name, type: "scatter", xAxisIndex: last, yAxisIndex: last, symbol, symbolSize: size, itemStyle: { color: colour(shade) }, data: events[name].map(([moment]) => [moment, name]),
        })),
        ...phases.map((phase) => named(PHASES[phase], { color: colour(`phase-${phase}`), opacity: SHADE })),
        named(NOT_CORRECTED, { color: colour("tentative"), opacity: 0.2 }),
      ],
    },
  };
};
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** Where the window went: one stacked bar. */
const ledger = (data) => ({ colour }) => {
  const names = Object.keys(data.seconds);
  const share = (name) => (100 * data.seconds[name]) / data.window_s;
  const say = (i) => `${names[i]}: ${number(data.seconds[names[i]], "s")}, ${number(share(names[i]), "%")}`;
  return {
    count: names.length, say, shownBy: (i) => [i, 0],
    option: {
      grid: { left: 12, right: 16, top: 56, bottom: 42 },
      legend: legend({ type: "plain", formatter: (name) => `${name} ${number(share(name), "%")}` }),
      tooltip: tooltip({ trigger: "item", formatter: ({ seriesIndex }) => say(seriesIndex) }),
      xAxis: axis({ max: 100, name: `share of the window of ${number(data.window_s, "s")} [%]`, nameGap: 26 }),
      yAxis: { type: "category", data: [""], show: false },
      series: names.map((name) => ({
        name, type: "bar", stack: "window", barWidth: 44, data: [share(name)], itemStyle: { color: colour(`ledger-${name}`), borderColor: colour("card"), borderWidth: 1 },
      })),
    },
  };
};

/** Useful time against the clock, measured and replayed, with a line at each fault; below, by how much they differ. */
const useful_time = (data) => ({ colour, narrow }) => {
  const left = narrow ? 58 : 74;
  const apart = data.second.map((_, i) => data.measured_s[i] - data.replayed_s[i]);
  const say = (i) => `${number(data.second[i], "s")}\nmeasured ${number(data.measured_s[i], "s")} useful, replayed ${number(data.replayed_s[i], "s")}\ndifference ${number(apart[i], "s")}`;
  const faults = faultLines(data.faults, colour);
  const line = (name, panel, values, shade, rest = {}) => ({
    name, type: "line", xAxisIndex: panel, yAxisIndex: panel, data: values.map((value, i) => [data.second[i], value]), symbol: "none", lineStyle: { width: 1.8, ...rest }, itemStyle: { color: colour(shade) }, markLine: faults,
  });
  const panel = (i) => ({ gridIndex: i, min: 0, max: "dataMax", axisLabel: { ...axis({}).axisLabel, show: i === 1 } });
  return {
    count: data.second.length, say,
    option: {
      grid: [{ left, right: 20, top: 40, height: 150 }, { left, right: 20, top: 214, height: 70 }],
      legend: legendOf({ measured: "solid", replayed: "dashed", fault: "solid" }),
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(found[0].dataIndex) }),
      xAxis: [axis(panel(0)), axis({ ...panel(1), name: "time in the window [s]", nameGap: 28 })],
      yAxis: [axis({ gridIndex: 0, name: "useful time [s]", nameGap: left - 18, min: 0 }), axis({ gridIndex: 1, name: "difference [s]", nameGap: left - 18, splitNumber: 2 })],
      series: [
        line("measured", 0, data.measured_s, "measured", { width: 2.6 }),
        line("replayed", 0, data.replayed_s, "model", { width: 1.3, type: "dashed" }),
        line("difference", 1, apart, "text"),
        named("fault", { color: colour("fault") }),
      ],
    },
  };
};

const SHOWN_AT_ONCE = 25;

/** The phases of every recovery, one stacked bar for each; of the restart the text says how much was Spark's. */
const recoveries = (data) => ({ colour, narrow }) => {
  const phases = Object.keys(PHASES);
  const { names } = data;
  const spark = (i) => (data.executor[i] === null ? "" : `, of that Spark's executor ${number(data.executor[i], "s")}`);
  const told = (phase, i) => `${PHASES[phase]} ${data.phases[phase][i] === null ? "not measured" : number(data.phases[phase][i], "s")}${phase === "restart" ? spark(i) : ""}`;
  const say = (i) => [names[i], ...phases.map((phase) => told(phase, i)), `${data.totals[i]} in all`].join("\n");
  const many = names.length > SHOWN_AT_ONCE;
  return {
    count: names.length, say,
    option: {
      grid: { left: narrow ? 96 : 150, right: many ? 40 : 16, top: 32, bottom: 42 },
      legend: legend(),
      tooltip: tooltip({ trigger: "axis", axisPointer: { type: "shadow" }, formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ name: "time since the fault [s]", nameGap: 26 }),
      yAxis: axis({ type: "category", data: names, inverse: true, splitLine: { show: false }, axisLabel: { ...axis({}).axisLabel, width: narrow ? 88 : 140, overflow: "truncate" } }),
      dataZoom: many ? [{ type: "slider", yAxisIndex: 0, right: 4, width: 16, startValue: 0, endValue: SHOWN_AT_ONCE - 1, borderColor: colour("line"), fillerColor: colour("line"), showDetail: false }] : [],
      series: phases.filter((phase) => data.phases[phase].some((value) => value !== null)).map((phase) => ({
        name: PHASES[phase], type: "bar", stack: "recovery", barMaxWidth: 22, data: data.phases[phase].map((value) => value ?? 0), itemStyle: { color: colour(`phase-${phase}`), borderColor: colour("card"), borderWidth: 1 },
      })),
    },
  };
};

const AVAILABILITY = { available: ["available", "measured", "solid"], normal: ["on time again", "measured", "dotted"], planned: ["told to roll back", "asked", "dashed"], predicted: ["planned by the model", "model", "dashed"] };

/** The share of lost queries that are available, step by step: planned beside measured. */
const availability = (data) => ({ colour }) => {
  const drawn = Object.keys(AVAILABILITY).filter((name) => data[name]);
  const percent = (share) => (share == null ? null : 100 * share);
  const say = (i) => [`${number(data.at_s[i], "s")}`, ...drawn.map((name) => `${AVAILABILITY[name][0]} ${number(percent(data[name][i]), "%")} of ${data.queries} queries`), ...(data.never_back.length ? [`not available by the end: ${data.never_back.join(", ")}`] : [])].join("\n");
  return {
    count: data.at_s.length, say,
    option: {
      grid: { left: 56, right: 20, top: 40, bottom: 46 },
      legend: legendOf(Object.fromEntries(drawn.map((name) => [AVAILABILITY[name][0], AVAILABILITY[name][2]]))),
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ name: "time in the window [s]", nameGap: 28, max: "dataMax" }),
      yAxis: axis({ name: "queries available [%]", nameGap: 38, min: 0, max: 100 }),
      series: drawn.map((name) => ({
        name: AVAILABILITY[name][0], type: "line", step: "end", symbol: "none", data: data.at_s.map((at, i) => [at, percent(data[name][i])]),
        lineStyle: { width: 2, type: AVAILABILITY[name][2] }, itemStyle: { color: colour(AVAILABILITY[name][1]) },
      })),
    },
  };
};

drawAll({ utilization, useful_time, timeline, ledger, recoveries, availability });

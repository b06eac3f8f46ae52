// The charts of a comparison.
import { axis, drawAll, legend, number, tooltip } from "./chart.js";

const names = (data, narrow) => axis({
  type: "category", data: data.names, inverse: true, splitLine: { show: false },
  axisLabel: { ...axis({}).axisLabel, width: narrow ? 96 : 190, overflow: "break", lineHeight: 15 },
});
const grid = (narrow) => ({ left: narrow ? 108 : 204, right: 18, top: 34, bottom: 42 });

/** The share of each class of the ledger, one stacked bar per run. */
const ledgers = (data) => ({ colour, narrow }) => {
  const classes = Object.keys(data.shares);
  const say = (i) => [data.names[i], ...classes.map((name) => `${name} ${number(data.shares[name][i], "%")}`)].join("\n");
  return {
    count: data.names.length, say,
    option: {
      grid: grid(narrow), legend: legend(),
      tooltip: tooltip({ trigger: "axis", axisPointer: { type: "shadow" }, formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ max: 100, name: "share of the window [%]", nameGap: 26 }), yAxis: names(data, narrow),
      series: classes.map((name) => ({
        name, type: "bar", stack: "window", barMaxWidth: 30, data: data.shares[name], itemStyle: { color: colour(`ledger-${name}`), borderColor: colour("card"), borderWidth: 1 },
      })),
    },
  };
};

/** Measured utilization of each run beside the predicted one with its interval. */
const utilizations = (data) => ({ colour, narrow }) => {
  const points = (values) => values.map((value, i) => [value, i]);
  const say = (i) => `${data.names[i]}\nmeasured ${number(data.measured[i])}\npredicted ${number(data.predicted[i])}` + (data.low[i] == null ? "" : `, ${number(data.low[i])} to ${number(data.high[i])}`);
  const arms = data.names.map((_, i) => [[data.low[i], i], [data.high[i], i]]).filter(([[low]]) => low != null);
  return {
    count: data.names.length, say, shownBy: (i) => [data.measured[i] == null ? 1 : 0, i],
    option: {
      grid: grid(narrow), legend: legend({ data: ["measured", "predicted"] }),
      tooltip: tooltip({ trigger: "item", formatter: ({ value }) => say(value[1]) }),
      xAxis: axis({ min: 0, max: 1, name: "utilization U", nameGap: 26 }), yAxis: names(data, narrow),
      series: [
        { name: "measured", type: "scatter", data: points(data.measured), symbol: "diamond", symbolSize: 14, itemStyle: { color: colour("measured") }, z: 4 },
        { name: "predicted", type: "scatter", data: points(data.predicted), symbolSize: 9, itemStyle: { color: colour("model") } },
        ...arms.map((ends) => ({ name: "predicted", type: "line", data: ends, symbol: "rect", symbolSize: [2, 14], lineStyle: { width: 2 }, itemStyle: { color: colour("model") } })),
      ],
    },
  };
};

const SHADES = ["green", "blue", "orange", "red", "text"];
const DASHES = ["solid", "dashed", "dotted"]; // the next ones where the colours begin again

/** The share of lost queries that are available, of each run since its first loss. */
const availabilities = (data) => ({ colour }) => {
  const points = data.names.flatMap((_, run) => data.at_s[run].map((_, moment) => [run, moment]));
  const sayOf = (run, moment) => `${data.names[run]}\n${number(data.at_s[run][moment], "s")} after the first loss: ${number(100 * data.shares[run][moment], "%")}`;
  return {
    count: points.length, say: (i) => sayOf(...points[i]), shownBy: (i) => points[i],
    option: {
      grid: { left: 56, right: 20, top: 40, bottom: 46 }, legend: legend({ icon: "inherit", itemWidth: 28 }),
      tooltip: tooltip({ trigger: "item", formatter: ({ seriesIndex, dataIndex }) => sayOf(seriesIndex, dataIndex) }),
      xAxis: axis({ name: "time since the first loss [s]", nameGap: 28, max: "dataMax" }),
      yAxis: axis({ name: "queries available [%]", nameGap: 38, min: 0, max: 100 }),
      series: data.names.map((name, i) => ({
        name, type: "line", step: "end", symbolSize: 5, data: data.at_s[i].map((at, k) => [at, 100 * data.shares[i][k]]),
        lineStyle: { width: 2, type: DASHES[Math.floor(i / SHADES.length)] }, itemStyle: { color: colour(SHADES[i % SHADES.length]) },
      })),
    },
  };
};

drawAll({ ledgers, utilizations, availabilities });

// The chart of a matrix of protections: what each does over the failure rate, or what a failure costs.
import { axis, drawAll, legend, number, tooltip } from "./chart.js";

const SHADES = ["blue", "orange", "green", "red", "pink", "sky", "text"];
const DASHES = ["solid", "dashed", [12, 3, 3, 3]]; // the next ones where the colours begin again

/** Records per second or utilization over failures per hour, with the limits of 95 % dotted, and where another protection takes over. */
const rates = (data) => ({ colour, narrow }) => {
  const last = data.per_hour.length;
  const say = (i) => [`${number(data.per_hour[i % last])} failures per hour`, ...data.names.map((name, k) => `${name}: ${number(data.curves[k].value[i % last], data.unit)}`)].join("\n");
  const line = (k, limit, style) => ({
    name: data.names[k], type: "line", symbol: "none", data: data.curves[k][limit].map((value, i) => [data.per_hour[i], value]),
    lineStyle: style, itemStyle: { color: colour(SHADES[k % SHADES.length]) },
  });
  const changes = { silent: true, symbol: "none", lineStyle: { color: colour("muted"), type: "dashed" }, label: { formatter: ({ value }) => number(value), color: colour("text") }, data: data.changes_per_hour.map((at) => ({ xAxis: at })) };
  return {
    count: last, say,
    option: {
      grid: { left: narrow ? 58 : 72, right: 24, top: 54, bottom: 46 }, legend: legend({ data: data.names, icon: "inherit", itemWidth: 28, itemHeight: 14 }),
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ name: "failures per hour of time not lost to failures", nameGap: 28, max: "dataMax", axisLabel: { ...axis({}).axisLabel, showMaxLabel: false } }),
      yAxis: axis({ name: data.axis, nameGap: narrow ? 44 : 56, min: 0 }),
      series: data.names.flatMap((_, k) => [
        { ...line(k, "value", { width: 2.5, type: DASHES[Math.floor(k / SHADES.length) % DASHES.length] }), markLine: k === 0 ? changes : undefined },
        line(k, "low", { width: 1, type: "dotted" }), line(k, "high", { width: 1, type: "dotted" }),
      ]),
    },
  };
};

/** Seconds that a failure costs, with the limits of 95 %. */
const costs = (data) => ({ colour, narrow }) => {
  const say = (i) => `${data.names[i]}\na failure costs ${number(data.value[i], "s")}` + (data.low[i] == null ? "" : `, ${number(data.low[i])} to ${number(data.high[i])}`);
  const arms = data.names.map((_, i) => [[data.low[i], i], [data.high[i], i]]).filter(([[low]]) => low != null);
  return {
    count: data.names.length, say,
    option: {
      grid: { left: narrow ? 128 : 330, right: 18, top: 20, bottom: 42 },
      tooltip: tooltip({ trigger: "item", formatter: ({ value }) => say(value[1]) }),
      xAxis: axis({ min: 0, name: "seconds that a failure costs", nameGap: 26 }),
      yAxis: axis({ type: "category", data: data.names, inverse: true, splitLine: { show: false }, axisLabel: { ...axis({}).axisLabel, width: narrow ? 116 : 316, overflow: "break", lineHeight: 15 } }),
      series: [
        { type: "scatter", data: data.value.map((value, i) => [value, i]), symbol: "diamond", symbolSize: 14, itemStyle: { color: colour("red") }, z: 4 },
        ...arms.map((ends) => ({ type: "line", data: ends, symbol: "rect", symbolSize: [2, 14], lineStyle: { width: 2 }, itemStyle: { color: colour("red") } })),
      ],
    },
  };
};

drawAll({ rates, costs });

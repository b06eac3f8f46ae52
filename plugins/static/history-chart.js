// A metric from run to run, with the levels between its changes.
import { axis, drawAll, number, tooltip } from "./chart.js";

const history = (data) => ({ colour }) => {
  const count = data.values.length;
  const say = (i) => `${data.names[i]}\n${data.started[i]} UTC\n${data.metric} ${number(data.values[i], data.unit)}`;
  const places = data.changes.map((change) => data.names.indexOf(change.run_id));
  const levels = data.changes.flatMap((change, k) => {
    const until = places[k + 1] ?? count;
    const before = k === 0 ? [[{ xAxis: 0, yAxis: change.before }, { xAxis: Math.max(places[k] - 1, 0), yAxis: change.before }]] : [];
    return [...before, [{ xAxis: places[k], yAxis: change.after }, { xAxis: until - 1, yAxis: change.after }]];
  });
  const verticals = data.changes.map((change, k) => ({
    xAxis: places[k], lineStyle: { color: colour(change.verdict === "worse" ? "red" : "green"), type: "dashed" },
    label: { show: true, formatter: change.verdict, color: colour("text"), position: "end" },
  }));
  return {
    count, say,
    open: (i) => location.assign(`${document.querySelector("[data-chart=history]").dataset.source.split("/history.json")[0]}/runs/${data.names[i]}`),
    option: {
      grid: { left: 70, right: 24, top: 34, bottom: 62 },
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ type: "category", data: data.started.map((text) => text.slice(5)), splitLine: { show: false } }),
      yAxis: axis({ name: `${data.metric}${data.unit && ` [${data.unit}]`}`, nameGap: 52, scale: true }),
      dataZoom: count > 60 ? [{ type: "slider", bottom: 6, height: 20, borderColor: colour("line"), fillerColor: colour("line"), showDetail: false }] : [],
      series: [{
        type: "line", name: data.metric, data: data.values, symbol: "circle", symbolSize: 7, lineStyle: { width: 1 }, itemStyle: { color: colour("blue") },
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colour("orange"), width: 2.5, type: "solid" }, data: [...levels, ...verticals] },
      }],
    },
  };
};

drawAll({ history });

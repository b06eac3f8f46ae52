// A metric from run to run, with the levels between its changes.
import { axis, drawAll, number, tooltip } from "./chart.js";

const history = (data) => ({ colour }) => {
  const count = data.values.length;
  const say = (i) => `${data.names[i]}\n${data.started[i]} UTC\n${data.metric} ${number(data.values[i], data.unit)}`;
  const place = (run) => data.names.indexOf(run);
  const levels = data.levels.map(({ first, last, value }) => [{ xAxis: place(first), yAxis: value }, { xAxis: place(last), yAxis: value }]);
  const verticals = data.changes.map((change) => ({
    xAxis: place(change.run_id), lineStyle: { color: colour(change.verdict === "worse" ? "red" : "green"), type: "dashed" },
    label: { show: true, formatter: change.verdict, color: colour("text"), position: "end" },
  }));
  return {
    count, say,
    open: (i) => location.assign(`${document.querySelector("[data-chart=history]").dataset.source.split("/history.json")[0]}/runs/${data.names[i]}`),
    option: {
      grid: { left: 70, right: 24, top: 34, bottom: 74 },
      tooltip: tooltip({ trigger: "axis", formatter: (found) => say(found[0].dataIndex) }),
      xAxis: axis({ type: "category", data: data.started.map((text) => text.slice(5)), splitLine: { show: false }, name: "start of the run (UTC)", nameGap: 28 }),
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

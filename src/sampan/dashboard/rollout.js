// The pods of a workload on one time axis: when each was created, what it waited for, until it ran.
//
// Invariant: each row is what the server noted of that pod; who may not see one is told so.

import {get, pathOf, PODS, query} from "./api.js";
import {h, plain, seconds, show, svg} from "./dom.js";

const MOST = 60; // pods; more are no picture any more
const LANES = ["apiserver", "scheduler", "kubelet"];
const ROW = 20;
const NAMES = 240;
const WIDTH = 1000;

// Of a Deployment, StatefulSet, Job: of what has pods by a selector.
export async function rolloutView(place, namespace, {spec}) {
  const labels = Object.entries(spec?.selector?.matchLabels ?? {}).map((pair) => pair.join("="));
  if (!labels.length) return;
  try {
    const found = await get(pathOf(PODS, namespace) + query({labelSelector: labels.join(","), limit: MOST}));
    const rows = (await Promise.all(found.items.map(rowOf))).filter(Boolean).sort((a, b) => a.began - b.began);
    show(place, h("h2", {}, "Its pods, on one time axis"), rows.length ? chart(rows) : h("p", {class: "quiet"}, "This server remembers nothing of its pods."));
  } catch (error) {
    show(place, h("p", {class: "problem"}, plain(error.message)));
  }
}

async function rowOf({metadata: {namespace, name, uid}}) {
  try {
    const {traces} = await get(`/sampan/v1/trace/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`);
    const journey = traces.find((trace) => trace.uid === uid)?.journey;
    return journey && {name, link: `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, ...journey};
  } catch (error) {
    if (error.status === 404) return null; // made before this server began to look
    throw error;
  }
}

function chart(rows) {
  const began = rows[0].began;
  const until = Math.max(...rows.map((row) => row.ready ?? row.ended));
  const length = Math.max(until - began, 1e-6);
  const scale = (moment) => NAMES + ((moment - began) / length) * (WIDTH - NAMES - 80);
  const bars = rows.map((row, at) => {
    const label = plain(row.name);
    return svg("g", {},
      svg("text", {x: 0, y: at * ROW + 14}, label.length > 36 ? `${label.slice(0, 35)}…` : label),
      row.critical.map((step) => svg("rect", {
        x: scale(step.began), y: at * ROW + 3, height: ROW - 6, width: Math.max(1, scale(step.ended) - scale(step.began)),
        class: `lane${LANES.includes(step.lane) ? LANES.indexOf(step.lane) : "waiting"}`,
      }, svg("title", {}, `${plain(step.lane)}: ${plain(step.name)}: ${seconds(step.ended - step.began)}`))),
      svg("text", {x: Math.min(scale(row.ready ?? row.ended) + 4, WIDTH - 76), y: at * ROW + 14, class: "took"}, seconds((row.ready ?? row.ended) - row.began)));
  });
  const height = rows.length * ROW;
  const summary = `${rows.length} pods in ${seconds(length)}`;
  return h("div", {class: "waterfall"},
    h("p", {role: "status"}, `${summary}. The colours are who it waited for: API server, scheduler, kubelet; grey: nobody.`),
    h("div", {tabindex: "0", role: "region", "aria-label": `Rollout: ${summary}`},
      svg("svg", {viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img", "aria-label": summary}, bars)),
    h("ol", {}, rows.map((row) => h("li", {},
      h("a", {href: row.link}, plain(row.name)),
      `: created after ${seconds(row.began - began)}, ${plain(row.reached || "created")} after ${seconds(row.ended - began)}`,
      row.slowest && `; slowest: ${plain(row.slowest.lane)}: ${plain(row.slowest.name)} (${seconds(row.slowest.ended - row.slowest.began)})`))));
}

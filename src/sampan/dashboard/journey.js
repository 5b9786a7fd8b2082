// A pod's way from the request to its containers: stations that light up, and a waterfall.
//
// Invariant: what is drawn is what the server noted (/sampan/v1/trace); nothing is made up. A trace
// that lost steps says so. Which steps the pod had to wait for is worked out by the server, for this
// page and for `sampan trace`.

import {get} from "./api.js";
import {h, plain, seconds, setText, show, svg} from "./dom.js";

// Which steps of a trace belong to which station. The first three are parts of the create request,
// which are noted where it came over the wire.
const STATIONS = [
  ["Request", (span, isPart) => span.name === "create pods" || (isPart && /^(authentication|priority|authorization|decoding|defaulting)/.test(span.name))],
  ["Store", (span, isPart) => isPart && /^(store|response)/.test(span.name)],
  ["Admission", (span, isPart) => isPart],
  ["Scheduler", (span) => span.lane === "scheduler"],
  ["Containers", (span) => span.lane === "kubelet" && /^(create|start|image|pull|postStart) /.test(span.name)],
  ["Node", (span) => span.lane === "kubelet"],
];
const ORDER = ["Request", "Admission", "Store", "Scheduler", "Node", "Containers"];
const LATER = 1200; // milliseconds: the last steps are delivered a little after the pod changed

export function journeyView(place, scope, namespace, name) {
  const stations = h("ol", {class: "stations"}, ORDER.map(station));
  const sum = h("p", {role: "status"});
  const chart = h("div", {class: "waterfall"});
  show(place, h("h2", {id: "journey-title"}, "Its way"), stations, sum, chart);
  const path = `/sampan/v1/trace/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  let timer = 0;
  let seen = "";
  let drawn = 0;
  const read = async (uid) => {
    try {
      const found = await get(path);
      const trace = found.traces.find((item) => item.uid === uid) ?? found.traces[0];
      if (trace.spans.length === drawn) return;
      drawn = trace.spans.length;
      drawStations(stations, trace);
      sum.textContent = sumOf(trace);
      const open = chart.querySelector("details")?.open;
      show(chart, slowest(trace.journey), every(trace, open));
    } catch (error) {
      sum.textContent = error.status === 404 ? "This server remembers nothing of its way." : plain(error.message);
    }
  };
  scope.add(() => clearTimeout(timer));
  return {
    changed(pod) {
      if (!pod || pod.metadata.resourceVersion === seen) return;
      seen = pod.metadata.resourceVersion;
      read(pod.metadata.uid);
      clearTimeout(timer);
      timer = setTimeout(() => read(pod.metadata.uid), LATER);
    },
  };
}

// The stations stay; one that is reached lights up once.
function drawStations(place, trace) {
  const spans = trace.spans.filter((span) => span.began <= endOf(trace.spans));
  const create = trace.spans.findIndex((span) => span.name === "create pods");
  const found = new Map(ORDER.map((title) => [title, []]));
  for (const span of spans) {
    const station = STATIONS.find(([, fits]) => fits(span, create >= 0 && span.parent === create));
    if (station) found.get(station[0]).push(span);
  }
  const reached = ORDER.findLastIndex((title) => found.get(title).length);
  ORDER.forEach((title, at) => {
    const steps = found.get(title);
    const item = place.children[at];
    item.classList.toggle("reached", at <= reached);
    const text = steps.length ? `${seconds(spanned(steps))}, ${steps.length} steps` : at < reached ? "passed" : "not yet";
    setText(item.lastChild, text);
  });
}

function station(title, at) {
  const item = h("li", {}, h("span", {class: "dot", "aria-hidden": "true"}), h("strong", {}, title), h("span", {class: "quiet"}, "not yet"));
  item.style.animationDelay = `${at * 180}ms`;
  return item;
}

// When it was Running, or what is last known.
function endOf(spans) {
  const running = spans.filter((span) => span.facts?.phase === "Running").map((span) => span.ended);
  return running.length ? Math.min(...running) : Math.max(...spans.map((span) => span.ended));
}

function spanned(spans) {
  return spans.length ? Math.max(...spans.map((span) => span.ended)) - Math.min(...spans.map((span) => span.began)) : 0;
}

function sumOf({dropped, journey}) {
  if (!journey) return "Nothing was recorded.";
  const lost = dropped ? ` ${dropped} steps found no room and are missing.` : "";
  const {began, ended, ready, stopped} = journey;
  if (stopped) return `Not Running; it stopped at ${plain(stopped.lane)}: ${plain(stopped.name)}.${lost}`;
  const later = ready ? `, Ready ${seconds(ready - ended)} later` : "";
  return `Create to ${plain(journey.reached || "its last step")} in ${seconds(ended - began)}${later}.${lost}`;
}

const SLOWEST = 3; // lines

// What it waited for longest; all the rest is folded.
function slowest(journey) {
  if (!journey?.critical.length) return null;
  const most = [...journey.critical].sort((a, b) => tookOf(b) - tookOf(a)).slice(0, SLOWEST);
  const advice = journey.slowest?.advice;
  return [
    h("p", {}, "It waited longest for:"),
    h("ol", {class: "slowest"}, most.map((step) =>
      h("li", {}, `${plain(step.lane)}: ${plain(step.name)}, ${seconds(tookOf(step))} (${shareOf(step, journey)})`))),
    advice && h("p", {}, `To make it faster: ${plain(advice)}.`),
  ];
}

function every(trace, open) {
  return h("details", {open: Boolean(open)}, h("summary", {}, `All ${trace.spans.length} steps on one time axis`), waterfall(trace), waits(trace.journey));
}

function tookOf(step) {
  return step.ended - step.began;
}

function shareOf(step, {critical}) {
  const whole = critical.at(-1).ended - critical[0].began;
  return `${Math.round((100 * tookOf(step)) / Math.max(whole, 1e-9))} %`;
}

const ROW = 18;
const NAMES = 240;

// On one time axis, up to Ready; lanes in the order in which they act. What the pod had to wait for
// is drawn full.
function waterfall({spans, journey}) {
  if (!journey) return null;
  const {began} = journey;
  const until = journey.ready ?? journey.ended;
  const length = Math.max(until - began, 1e-6);
  const rows = spans.filter((span) => span.began <= until).sort((a, b) => a.began - b.began || b.ended - a.ended);
  const lanes = [...new Set(rows.map((span) => span.lane))];
  const width = 1000;
  const scale = (moment) => NAMES + ((Math.min(moment, until) - began) / length) * (width - NAMES - 80);
  const bar = (step, y, look) => svg("rect", {x: scale(step.began), y: y + 3, width: Math.max(1.5, scale(step.ended) - scale(step.began)), height: ROW - 6, class: look});
  const bars = rows.map((span, at) => {
    const y = at * ROW;
    const took = seconds(span.ended - span.began);
    const label = `${span.parent >= 0 ? "\u00a0\u00a0" : ""}${plain(span.lane)}: ${plain(span.name)}`;
    return svg("g", {class: `lane${lanes.indexOf(span.lane) % 4}`},
      svg("title", {}, `${label.trim()}: ${took}${factsOf(span)}`),
      svg("text", {x: 0, y: y + 13}, label.length > 40 ? `${label.slice(0, 39)}…` : label),
      bar(span, y, "part"), waitedFor(span, journey).map((step) => bar(step, y, "critical")),
      svg("text", {x: Math.min(scale(span.ended) + 4, width - 76), y: y + 13, class: "took"}, took));
  });
  const height = rows.length * ROW;
  const summary = `${rows.length} steps in ${seconds(length)}`;
  return h("div", {tabindex: "0", role: "region", "aria-label": `Waterfall: ${summary}`},
    svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": summary}, bars),
    h("details", {}, h("summary", {}, "As a list"),
      h("ol", {}, rows.map((span) => h("li", {}, `${plain(span.lane)}: ${plain(span.name)}, after ${seconds(span.began - began)} for ${seconds(span.ended - span.began)}${factsOf(span)}`)))));
}

// The parts of the critical path that are this step's.
function waitedFor(span, {critical}) {
  return critical.filter((step) => step.lane === span.lane && step.name === span.name && step.began >= span.began && step.ended <= span.ended);
}

function waits(journey) {
  if (!journey?.critical.length) return null;
  const {critical} = journey;
  return h("div", {class: "wide", tabindex: "0", role: "region", "aria-labelledby": "waits"},
    h("table", {class: "small"},
      h("caption", {id: "waits"}, "What it waited for: the critical path"),
      h("thead", {}, h("tr", {}, ["Step", "Took", "Share"].map((title) => h("th", {scope: "col"}, title)))),
      h("tbody", {}, critical.map((step) => h("tr", {},
        h("th", {scope: "row"}, `${plain(step.lane)}: ${plain(step.name)}`), h("td", {}, seconds(tookOf(step))), h("td", {}, shareOf(step, journey)))))));
}

function factsOf(span) {
  const facts = Object.entries(span.facts ?? {}).map(([key, value]) => `${plain(key)} ${plain(value)}`);
  return facts.length ? ` (${facts.join(", ")})` : "";
}

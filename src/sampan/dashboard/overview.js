// The cluster at a glance: nodes with their pods, what waits, how much happens, what it costs.

import {NODES, pathOf, PODS} from "./api.js";
import {showAttention} from "./attention.js";
import {h, plain, setText, show} from "./dom.js";
import {Figures} from "./figures.js";
import {follow, problemOf} from "./live.js";
import {inOrder, isReady, NodeMap, NOWHERE} from "./node_map.js";
import {lookOf, LOOKS, podLink, statusOf} from "./pods.js";
import {sparkline} from "./sparkline.js";
import {VirtualTable} from "./table.js";

const EVERY = 2000; // milliseconds between two looks at /metrics
const ATTENTION = 5000;

export async function view(place, scope, words, namespace) {
  const canvas = h("canvas", {role: "img", "aria-label": "Nodes and their pods", "aria-describedby": "map-summary"});
  const tip = h("p", {class: "tip", "aria-hidden": "true", hidden: true});
  const parts = {
    summary: h("p", {id: "map-summary"}),
    problems: h("div", {role: "status"}),
    attention: h("section", {"aria-label": "Needs attention"}),
    legend: h("ul", {class: "legend"}),
    figures: h("dl", {class: "figures"}),
    map: h("div", {class: "map"}, canvas, tip),
    table: h("div"),
  };
  show(
    place,
    h("h1", {}, "Overview"),
    parts.summary, parts.problems, parts.attention, parts.figures, parts.legend, parts.map,
    h("h2", {}, "Nodes"), parts.table,
  );
  const map = new NodeMap(canvas, scope);
  const table = new VirtualTable(parts.table, scope, {
    caption: "Nodes", columns: ["Node", "Ready", ...Object.keys(LOOKS)],
  });
  const counts = new Counts();
  const problems = {};
  let nodes = [];
  let pods = null;

  const redraw = throttle(scope, 250, () => {
    showCounts(parts, counts, nodes);
    if (pods) showAttention(parts.attention, pods.items.values(), nodes);
    table.setRows(nodeRows(nodes, counts));
    show(parts.problems, Object.values(problems).filter(Boolean).map((text) => h("p", {class: "problem"}, plain(text))));
  });
  follow(pathOf(NODES), scope, (live) => {
    problems.nodes = problemOf(live, "nodes");
    nodes = [...live.items.values()];
    map.setNodes(nodes);
    redraw();
  });
  follow(pathOf(PODS, namespace), scope, (live, changes) => {
    problems.pods = problemOf(live, "pods");
    pods = live;
    if (changes) map.change(changes);
    else map.reset(live.items.values());
    if (changes) counts.change(changes);
    else counts.reset(live.items.values());
    redraw();
  });
  scope.every(ATTENTION, redraw); // what takes too long is noticed without an event
  followPointer(canvas, tip, map);
  showFigures(parts.figures, scope);
}

// How many pods of which look are where; kept up to date, never counted anew.
class Counts {
  all = new Map(); // look → number
  byNode = new Map(); // node → look → number

  reset(pods) {
    this.all.clear();
    this.byNode.clear();
    for (const pod of pods) this.#add(pod, 1);
  }

  change(changes) {
    for (const [before, now] of changes.values()) {
      if (before) this.#add(before, -1);
      if (now) this.#add(now, 1);
    }
  }

  #add(pod, step) {
    const look = lookOf(pod);
    const node = pod.spec?.nodeName ?? NOWHERE;
    if (!this.byNode.has(node)) this.byNode.set(node, new Map());
    for (const counted of [this.all, this.byNode.get(node)]) counted.set(look, (counted.get(look) ?? 0) + step);
  }
}

function showCounts(parts, counts, nodes) {
  const total = [...counts.all.values()].reduce((sum, value) => sum + value, 0);
  const ready = nodes.filter(isReady).length;
  setText(parts.summary, `${counted(total, "pod")}, ${counted(nodes.length, "node")}, ${ready} ready`);
  const wanted = Object.keys(LOOKS).map((look) => [look, counts.all.get(look) ?? 0]);
  if (parts.legend.childElementCount !== wanted.length) {
    show(parts.legend, wanted.map(([look]) =>
      h("li", {}, h("span", {class: `swatch ${LOOKS[look]}`}), h("span", {}))));
  }
  wanted.forEach(([look, count], at) => setText(parts.legend.children[at].lastChild, `${look} ${count}`));
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function nodeRows(nodes, counts) {
  return nodes
    .map((node) => {
      const name = node.metadata.name;
      const own = counts.byNode.get(name);
      const link = `#/object/-/v1/nodes/-/${encodeURIComponent(name)}`;
      const cells = [name, isReady(node) ? "yes" : "no", ...Object.keys(LOOKS).map((look) => own?.get(look) ?? 0)];
      return {key: node.metadata.uid, cells, link};
    })
    .sort((a, b) => inOrder(a.cells[0], b.cells[0]));
}

function followPointer(canvas, tip, map) {
  const found = (event) => {
    const edge = canvas.parentElement.getBoundingClientRect();
    return [map.at(event.clientX - edge.left, event.clientY - edge.top), event.clientX - edge.left, event.clientY - edge.top];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [hit, x, y] = found(event);
    tip.hidden = !hit;
    canvas.classList.toggle("pointing", Boolean(hit?.pod));
    if (!hit) return;
    const {box, pod} = hit;
    tip.textContent = pod
      ? `${plain(pod.metadata.namespace)}/${plain(pod.metadata.name)}: ${plain(statusOf(pod))}`
      : `${plain(box.name || "not on a node yet")}: ${box.used} pods`;
    tip.style.transform = `translate(${Math.min(x + 12, canvas.clientWidth - 220)}px, ${y + 16}px)`;
  });
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  canvas.addEventListener("click", (event) => {
    const [hit] = found(event);
    if (hit?.pod) location.hash = podLink(hit.pod);
  });
}

function showFigures(place, scope) {
  const figures = new Figures();
  const past = new Map();
  const read = async () => {
    let found;
    try {
      found = await figures.read();
    } catch (error) {
      show(place, h("div", {}, h("dt", {}, "Figures"), h("dd", {class: "quiet"},
        error.forbidden ? "You may not read /metrics." : plain(error.message))));
      return;
    }
    for (const {title, value} of found) past.set(title, [...(past.get(title) ?? []), value].slice(-60));
    show(place, found.map(({title, text}) =>
      h("div", {}, h("dt", {}, title), h("dd", {}, text, sparkline(past.get(title))))));
  };
  read();
  scope.every(EVERY, read);
}

// At most once in so many milliseconds, and once more after the last call.
function throttle(scope, milliseconds, work) {
  let timer = 0;
  scope.add(() => clearTimeout(timer));
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      work();
    }, milliseconds);
  };
}

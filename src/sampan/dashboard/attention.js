// What needs attention: pods and nodes that are not as they should be, the worst first.

import {age, h, plain, show} from "./dom.js";
import {inOrder, isReady} from "./node_map.js";
import {causeOf, lookOf, LOOKS, podLink, restartsOf, statusOf} from "./pods.js";

const MOST = 12; // lines
const WORST_FIRST = ["Failing", "Failed", "Unknown", "Pending", "Not ready", "Terminating", "Starting"];
// A pod on its way needs nobody for so long.
const PATIENCE = {Pending: 5, "Not ready": 30, Starting: 60, Terminating: 120}; // seconds

export function showAttention(place, pods, nodes, now = Date.now()) {
  const found = [
    ...nodes.filter((node) => !isReady(node)).map(nodeRow),
    ...troubled(pods, now).map(podRow),
  ];
  if (!found.length) return show(place);
  const more = found.length - MOST;
  show(place,
    h("h2", {id: "attention-title"}, `Needs attention (${found.length})`),
    h("ul", {class: "attention"}, found.slice(0, MOST)),
    more > 0 && h("p", {class: "quiet"}, `and ${more} more: `, h("a", {href: "#/table/-/v1/pods"}, "all pods")));
}

function troubled(pods, now) {
  return [...pods]
    .map((pod) => ({pod, look: lookOf(pod)}))
    .filter(({pod, look}) => WORST_FIRST.includes(look) && sinceOf(pod, now) >= (PATIENCE[look] ?? 0))
    .sort((a, b) => WORST_FIRST.indexOf(a.look) - WORST_FIRST.indexOf(b.look) || inOrder(nameOf(a.pod), nameOf(b.pod)));
}

function sinceOf(pod, now) {
  return (now - Date.parse(pod.metadata.deletionTimestamp ?? pod.metadata.creationTimestamp)) / 1000;
}

function nameOf({metadata}) {
  return `${metadata.namespace}/${metadata.name}`;
}

function podRow({pod, look}) {
  const restarts = restartsOf(pod);
  return h("li", {},
    h("span", {class: `swatch ${LOOKS[look]}`, "aria-hidden": "true"}),
    h("a", {href: podLink(pod)}, plain(nameOf(pod))), ` ${plain(statusOf(pod))}`,
    h("span", {class: "quiet"}, `${restarts ? `, ${restarts} restarts` : ""}, ${age(pod.metadata.creationTimestamp)}`),
    h("span", {class: "cause"}, plain(causeOf(pod))));
}

function nodeRow(node) {
  const ready = (node.status?.conditions ?? []).find((item) => item.type === "Ready");
  return h("li", {},
    h("span", {class: "swatch failed", "aria-hidden": "true"}),
    h("a", {href: `#/object/-/v1/nodes/-/${encodeURIComponent(node.metadata.name)}`}, `node ${plain(node.metadata.name)}`), " NotReady",
    ready?.message && h("span", {class: "quiet"}, `: ${plain(ready.message)}`));
}

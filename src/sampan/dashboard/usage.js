// What a pod or node uses, as `kubectl top` says it, and how that went since the page was opened.
//
// Invariant: nodes are asked only while somebody looks, and only for who may read metrics.k8s.io.

import {fields, get, may, pathOf, query} from "./api.js";
import {h, plain, show} from "./dom.js";
import {sparkline} from "./sparkline.js";

const EVERY = 5000; // milliseconds
const SELDOM = 15000;
const KEPT = 60;
const GROUP = "metrics.k8s.io";

// `kind`: pods or nodes.
export async function usageView(place, scope, {plural, namespaced}, namespace, name) {
  if (!(await may("list", plural, {group: GROUP, namespace}))) return show(place, said("You may not read metrics.k8s.io."));
  const kind = {group: GROUP, version: "v1beta1", plural, namespaced};
  const path = pathOf(kind, namespace) + query({fieldSelector: fields({"metadata.name": name})});
  const past = {cpu: [], memory: []};
  const read = async () => {
    try {
      const found = (await get(path)).items.find((item) => item.metadata.name === name);
      draw(place, found && usedBy(found), past);
    } catch (error) {
      show(place, said(plain(error.message)));
    }
  };
  await read();
  scope.every(EVERY, read);
}

// Of every pod of a namespace, or every node: `tell(name → [CPU, memory])` now and while it is in sight.
// `isFew`: of very many it would cost more than it tells.
export async function usageOfAll(scope, {plural, namespaced}, namespace, isFew, tell) {
  if (!(await may("list", plural, {group: GROUP, namespace}))) return;
  const path = pathOf({group: GROUP, version: "v1beta1", plural, namespaced}, namespace);
  const read = async () => {
    if (!isFew()) return;
    try {
      const {items} = await get(path);
      tell(new Map(items.map((item) => [keyOf(item.metadata), cellsOf(usedBy(item))])));
    } catch {
      // the figures that are there stay
    }
  };
  await read();
  scope.every(SELDOM, read);
}

export function keyOf({namespace = "", name}) {
  return `${namespace}/${name}`;
}

function cellsOf({cpu, memory}) {
  return [milli(cpu), mebi(memory)];
}

function draw(place, used, past) {
  if (!used) return show(place, said("nothing known yet"));
  const texts = {cpu: ["CPU", milli(used.cpu)], memory: ["Memory in use", mebi(used.memory)]};
  show(place, Object.entries(texts).map(([key, [title, text]]) => {
    past[key] = [...past[key], used[key]].slice(-KEPT);
    return h("div", {}, h("dt", {}, title), h("dd", {}, text, sparkline(past[key])));
  }));
}

function said(text) {
  return h("div", {}, h("dt", {}, "Usage"), h("dd", {class: "quiet"}, text));
}

// Cores and bytes, of a node or of all containers of a pod.
export function usedBy({usage, containers = []}) {
  const all = usage ? [usage] : containers.map((item) => item.usage);
  return {cpu: total(all, "cpu"), memory: total(all, "memory")};
}

function total(usages, name) {
  return usages.reduce((sum, usage) => sum + numberOf(usage[name] ?? "0"), 0);
}

const SUFFIXES = {n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40};

// A quantity: 250m, 12Mi.
export function numberOf(quantity) {
  const [, digits, suffix] = /^([0-9.]+)([a-zA-Z]*)$/.exec(quantity) ?? [null, "0", ""];
  return Number(digits) * (SUFFIXES[suffix] ?? NaN);
}

function milli(cores) {
  return `${Math.ceil(Number((cores * 1000).toFixed(6)))}m`; // what a sum of fractions adds is no use
}

function mebi(bytes) {
  return `${Math.floor(bytes / 2 ** 20)}Mi`;
}

// Every kind that this server serves, as its discovery has it.

import {get} from "./api.js";
import {h, plain, show} from "./dom.js";
import {VirtualTable} from "./table.js";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
let kept = null;

// → [{group, version, plural, namespaced, kind, short, verbs}], each in its group's first version.
export async function kinds() {
  if (kept) return kept;
  const documents = await Promise.all(["/api", "/apis"].map((path) => get(path, {accept: AGGREGATED})));
  const groups = documents.flatMap((document) => document.items ?? []);
  const found = groups.flatMap(kindsOf).filter((kind) => kind.verbs.includes("list"));
  return (kept = found.sort((a, b) => a.plural.localeCompare(b.plural)));
}

function kindsOf(group) {
  const seen = new Set();
  return (group.versions ?? []).flatMap((version) => (version.resources ?? []).flatMap((item) => {
    if (seen.has(item.resource)) return [];
    seen.add(item.resource);
    return [{
      group: group.metadata?.name ?? "", version: version.version, plural: item.resource,
      namespaced: item.scope === "Namespaced", kind: item.responseKind?.kind ?? item.resource,
      short: item.shortNames ?? [], verbs: item.verbs ?? [],
    }];
  }));
}

export async function kindNamed(group, version, plural) {
  const wanted = group === "-" ? "" : group;
  const known = (await kinds()).find((kind) => kind.plural === plural && kind.group === wanted);
  return known ?? {group: wanted, version, plural, namespaced: true, kind: plural, short: [], verbs: []};
}

// Where in this page: "-" stands for what is empty.
export function tableLink(kind) {
  return "#/table/" + [kind.group || "-", kind.version, kind.plural].map(encodeURIComponent).join("/");
}

export function objectLink(kind, namespace, name) {
  if (kind.plural === "pods" && !kind.group) return "#/pod/" + [namespace, name].map(encodeURIComponent).join("/");
  return yamlLink(kind, namespace, name);
}

export function yamlLink(kind, namespace, name) {
  const words = [kind.group || "-", kind.version, kind.plural, namespace || "-", name];
  return "#/object/" + words.map(encodeURIComponent).join("/");
}

export async function view(place, scope) {
  const search = h("input", {id: "search", type: "search", autocomplete: "off"});
  const box = h("div");
  show(place, h("h1", {}, "Kinds"), h("p", {class: "search"}, h("label", {for: "search"}, "Search"), search), box);
  const table = new VirtualTable(box, scope, {
    caption: "Kinds", columns: ["Name", "Kind", "Group", "Version", "Scope", "Short"], height: 640,
  });
  kept = null; // definitions may have added some
  const all = await kinds();
  const redraw = () => {
    const wanted = search.value.toLowerCase();
    const rows = all.map((kind) => ({
      key: `${kind.group}/${kind.plural}`, link: tableLink(kind),
      cells: [kind.plural, kind.kind, kind.group || "core", kind.version, kind.namespaced ? "namespaced" : "cluster", kind.short.map(plain).join(", ")],
    }));
    table.setRows(rows.filter((row) => !wanted || row.cells.join(" ").toLowerCase().includes(wanted)));
  };
  search.addEventListener("input", redraw);
  redraw();
}

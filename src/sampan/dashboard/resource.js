// One kind as a table: the server's own columns, as kubectl prints them, kept up to date.
//
// Invariant: one request lists, one stream watches; both are the same rows.

import {ApiError, get, pathOf, pause, query, send} from "./api.js";
import {h, plain, show} from "./dom.js";
import {kindNamed, objectLink} from "./kinds.js";
import {inOrder} from "./node_map.js";
import {lookOfRow} from "./pods.js";
import {VirtualTable} from "./table.js";
import {keyOf, usageOfAll} from "./usage.js";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PAGE = 500;
const FEW = 500; // rows that are shown with what they use

export async function view(place, scope, [group, version, plural], namespace) {
  const kind = await kindNamed(group, version, plural);
  const search = h("input", {id: "search", type: "search", autocomplete: "off"});
  const state = h("p", {role: "status"});
  const box = h("div");
  show(place,
    h("h1", {}, plain(kind.plural)),
    h("p", {class: "search"}, h("label", {for: "search"}, "Search"), search), state, box);
  const rows = new Rows(kind, namespace);
  let table = null;
  const redraw = () => {
    if (!rows.columns) return;
    table ??= new VirtualTable(box, scope, {caption: kind.plural, columns: rows.titles(), height: 640});
    const found = rows.fitting(search.value.toLowerCase());
    table.setRows(found);
    state.textContent = `${found.length} of ${rows.byUid.size}`;
  };
  search.addEventListener("input", redraw);
  if (!kind.group && ["pods", "nodes"].includes(kind.plural)) {
    usageOfAll(scope, kind, namespace, () => rows.byUid.size <= FEW, (usage) => {
      const isFirst = !rows.usage;
      rows.usage = usage;
      if (isFirst) table?.setColumns(rows.titles());
      redraw();
    });
  }
  const aborted = new AbortController();
  scope.add(() => aborted.abort());
  keep(rows, redraw, aborted.signal).catch((error) => {
    if (aborted.signal.aborted) return;
    state.className = "problem";
    state.textContent = error.forbidden ? `You may not list ${plain(kind.plural)} here: ${plain(error.message)}` : plain(error.message);
  });
}

class Rows {
  byUid = new Map();
  columns = null;
  usage = null; // namespace/name → CPU, memory
  #kind;
  #shown;

  constructor(kind, namespace) {
    this.#kind = kind;
    this.path = pathOf(kind, namespace);
    this.everywhere = kind.namespaced && !namespace;
  }

  take(table) {
    if (table.columnDefinitions?.length) {
      this.columns = table.columnDefinitions;
      this.#shown = this.columns.flatMap((column, at) => (column.priority && !this.#isWanted(column) ? [] : [at]));
    }
    for (const row of table.rows ?? []) this.byUid.set(row.object.metadata.uid, row);
  }

  // Of the wide columns: where a pod is.
  #isWanted({name}) {
    return !this.#kind.group && this.#kind.plural === "pods" && name === "Node";
  }

  #lookOf(row) {
    return lookOfRow(this.#kind.plural, Object.fromEntries(this.columns.map(({name}, at) => [name, row.cells[at]])));
  }

  drop(table) {
    for (const row of table.rows ?? []) this.byUid.delete(row.object.metadata.uid);
  }

  titles() {
    const own = [...this.#shown.map((at) => this.columns[at].name), ...(this.usage ? ["CPU", "Memory"] : [])];
    return this.everywhere ? [own[0], "Namespace", ...own.slice(1)] : own;
  }

  fitting(wanted) {
    const rows = [...this.byUid].map(([uid, row]) => {
      const {name, namespace = ""} = row.object.metadata;
      const own = [...this.#shown.map((at) => row.cells[at]), ...(this.usage?.get(keyOf(row.object.metadata)) ?? [])];
      const cells = this.everywhere ? [own[0], namespace, ...own.slice(1)] : own;
      return {key: uid, cells, link: objectLink(this.#kind, namespace, name), order: `${namespace}/${name}`, look: this.#lookOf(row)};
    });
    const fitting = wanted ? rows.filter((row) => row.cells.join(" ").toLowerCase().includes(wanted)) : rows;
    return fitting.sort((a, b) => inOrder(a.order, b.order));
  }
}

async function keep(rows, redraw, signal) {
  for (; !signal.aborted; await pause(500)) {
    let next = "";
    let revision = "";
    rows.byUid.clear();
    do {
      const page = await get(rows.path + query({limit: PAGE, continue: next}), {accept: TABLE});
      rows.take(page);
      redraw();
      next = page.metadata.continue ?? "";
      revision = page.metadata.resourceVersion;
    } while (next && !signal.aborted);
    await watch(rows, revision, redraw, signal).catch((error) => {
      if (error instanceof ApiError && error.status) throw error; // else the network lost it
    });
  }
}

// Returns when the server ends it: then all is listed again.
async function watch(rows, revision, redraw, signal) {
  const where = rows.path + query({watch: 1, resourceVersion: revision});
  const answer = await send(where, {headers: {accept: TABLE}, signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  let frame = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (unread + value).split("\n");
    unread = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const {type, object} = JSON.parse(line);
      if (type === "ERROR") return;
      if (type === "DELETED") rows.drop(object);
      else rows.take(object);
    }
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      redraw();
    });
  }
}

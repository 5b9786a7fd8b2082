// Events as they come, the newest first.

import {EVENTS, pathOf} from "./api.js";
import {age, h, plain, show} from "./dom.js";
import {follow, problemOf} from "./live.js";
import {VirtualTable} from "./table.js";

export async function view(place, scope, words, namespace) {
  const search = h("input", {id: "search", type: "search", autocomplete: "off"});
  const problem = h("p", {role: "status", class: "problem"});
  const box = h("div");
  show(place, h("h1", {}, "Events"), h("p", {class: "search"}, h("label", {for: "search"}, "Search"), search), problem, box);
  const table = eventTable(box, scope, "Events");
  let events = [];
  const redraw = () => {
    const wanted = search.value.toLowerCase();
    table.setRows(events.map(rowOf).filter((row) => !wanted || row.cells.join(" ").toLowerCase().includes(wanted)));
  };
  search.addEventListener("input", redraw);
  follow(pathOf(EVENTS, namespace), scope, (live) => {
    problem.textContent = plain(problemOf(live, "events") ?? "");
    events = newestFirst(live.items.values());
    redraw();
  });
  scope.every(5000, redraw); // ages
}

export function eventTable(place, scope, caption) {
  return new VirtualTable(place, scope, {caption, columns: ["Object", "Type", "Reason", "Age", "Times", "From", "Message"], height: 640});
}

export function newestFirst(events) {
  return [...events].sort((a, b) => whenOf(b).localeCompare(whenOf(a)));
}

function whenOf(event) {
  const last = event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime;
  return last ?? event.metadata.creationTimestamp ?? "";
}

export function rowOf(event) {
  const about = event.involvedObject;
  const times = event.series?.count ?? event.count ?? 1;
  const from = event.reportingComponent || event.source?.component || "";
  const isPod = about.kind === "Pod" && about.name && about.namespace;
  const where = [about.namespace, about.name].map((word) => encodeURIComponent(word ?? ""));
  return {
    key: event.metadata.uid,
    cells: [`${about.kind}/${about.name}`, event.type, event.reason, age(whenOf(event)), times, from, event.message],
    link: isPod ? `#/pod/${where.join("/")}` : null,
    look: event.type === "Warning" ? "warning" : "",
  };
}

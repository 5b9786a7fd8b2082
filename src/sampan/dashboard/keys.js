// Everything by keyboard: what single keys do, outside of fields.

import {h} from "./dom.js";
import {opened} from "./dialog.js";

const VIEWS = {o: "#/", p: "#/table/-/v1/pods", d: "#/table/apps/v1/deployments", s: "#/table/-/v1/services", n: "#/table/-/v1/nodes", e: "#/events"};
const HELP = [
  ["/", "search, or choose a namespace where there is nothing to search"],
  ["j, k", "the next line of the table, the one before"],
  ["Enter", "open it"],
  ["o p d s n e", "overview, pods, deployments, services, nodes, events"],
  ["?", "this list"],
  ["Esc", "close it"],
];

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (act(event.key)) event.preventDefault();
  });
}

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]");
}

function act(key) {
  if (key === "/") (document.getElementById("search") ?? document.getElementById("namespace"))?.focus();
  else if (key === "?") help();
  else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (VIEWS[key]) location.hash = VIEWS[key];
  else return false;
  return true;
}

// Rows are links: the first, or the one beside that which has the focus.
function step(by) {
  const links = [...document.querySelectorAll("main .rows tbody a, main .attention a")];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

function help() {
  opened("Keys", h("dl", {class: "keys"}, HELP.map(([keys, text]) => h("div", {}, h("dt", {}, keys), h("dd", {}, text)))));
}

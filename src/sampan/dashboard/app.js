// The page: who is logged in, which view is shown, which namespace is looked at.
//
// Invariant: one view at a time; what it follows is let go before the next one is shown.

import {NAMESPACES, get, onRefused, pathOf, query, token} from "./api.js";
import {h, plain, Scope, show} from "./dom.js";
import * as events from "./events.js";
import {listenToKeys} from "./keys.js";
import * as kinds from "./kinds.js";
import * as lesson from "./lesson.js";
import * as object from "./object.js";
import * as overview from "./overview.js";
import * as pod from "./pod.js";
import * as resource from "./resource.js";
import {loginForm, logOut, resume} from "./session.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const who = document.getElementById("who");

// Each view is a module with `view(place, scope, words, namespace)`; those with a title are in the
// navigation.
const VIEWS = {
  "": ["Overview", overview],
  events: ["Events", events],
  kinds: ["Kinds", kinds],
  table: ["", resource],
  object: ["", object],
  pod: ["", pod],
  lesson: ["Lesson", lesson],
};

// What people look for most, each as its table.
const TABLES = {
  "table/-/v1/pods": "Pods",
  "table/apps/v1/deployments": "Deployments",
  "table/-/v1/services": "Services",
  "table/-/v1/nodes": "Nodes",
  "table/-/v1/namespaces": "Namespaces",
};

const NAMESPACE = "sampan.namespace";
const COUNTED = 15000; // milliseconds between two counts
let scope = new Scope();
let user = null;

function routeOf(hash) {
  const words = hash.replace(/^#\/?/, "").split("/").map(decoded);
  return VIEWS[words[0]] ? words : [""];
}

function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

async function showView() {
  if (!user) return;
  scope.close();
  const own = (scope = new Scope());
  const words = routeOf(location.hash);
  markCurrent(words);
  show(main, h("p", {class: "quiet"}, "Loading …"));
  try {
    await VIEWS[words[0]][1].view(main, own, words.slice(1), namespace());
  } catch (error) {
    if (scope === own) show(main, h("h1", {}, "Not shown"), h("p", {class: "problem"}, plain(error.message)));
  }
}

export function namespace() {
  return sessionStorage.getItem(NAMESPACE) ?? "";
}

function markCurrent(words) {
  const whole = words.join("/");
  for (const link of nav.querySelectorAll("a")) {
    const own = link.getAttribute("href").replace("#/", "");
    if (own === whole || own === words[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// How many there are, beside each table's name: of the namespace that is looked at.
async function showCounts() {
  if (!user || document.hidden) return;
  await Promise.all(Object.keys(TABLES).map(async (table) => {
    const [, group, version, plural] = table.split("/");
    const kind = {group: group === "-" ? "" : group, version, plural, namespaced: !["nodes", "namespaces"].includes(plural)};
    const place = nav.querySelector(`a[href="#/${table}"] .count`);
    try {
      const {items, metadata} = await get(pathOf(kind, namespace()) + query({limit: 1}));
      place.textContent = ` ${items.length + (metadata.remainingItemCount ?? 0)}`;
    } catch {
      place.textContent = ""; // who may not list them is told so by the table
    }
  }));
}

async function namespaceField() {
  const names = h("datalist", {id: "namespaces"});
  const input = h("input", {
    id: "namespace", list: "namespaces", placeholder: "all", value: namespace(), size: "12",
    autocomplete: "off", spellcheck: "false",
  });
  input.addEventListener("change", () => {
    sessionStorage.setItem(NAMESPACE, input.value.trim());
    showCounts();
    showView();
  });
  get(pathOf(NAMESPACES)).then(
    (found) => show(names, found.items.map((item) => h("option", {value: item.metadata.name}))),
    () => {}, // who may not list them writes the name
  );
  return h("div", {class: "namespace"}, h("label", {for: "namespace"}, "Namespace"), input, names);
}

async function enter(found) {
  user = found;
  const [first, ...others] = Object.entries(VIEWS).flatMap(([name, [title]]) => (title ? [[name, title]] : []));
  const links = [first, ...Object.entries(TABLES), ...others];
  show(nav, links.map(([name, title]) => h("a", {href: `#/${name}`}, title, TABLES[name] && h("span", {class: "count"}))));
  show(
    who,
    await namespaceField(),
    h("span", {class: "user", title: (user.groups ?? []).map(plain).join(", ")}, plain(user.username)),
    token.get() && h("button", {type: "button", onclick: logOut}, "Log out"),
  );
  nav.hidden = who.hidden = false;
  showCounts();
  await showView();
}

function leave(problem) {
  user = null;
  scope.close();
  nav.hidden = who.hidden = true;
  loginForm(main, problem, enter);
}

onRefused(() => {
  if (user) {
    token.clear();
    leave("The session is over.");
  }
});
window.addEventListener("hashchange", () => {
  // Another link of `sampan ui` in the same tab: begin anew.
  if (location.hash.startsWith("#code=")) location.reload();
  else showView().then(() => main.focus({preventScroll: true}));
});

listenToKeys();
setInterval(showCounts, COUNTED);
const {user: found, problem} = await resume();
if (found) await enter(found);
else leave(problem);

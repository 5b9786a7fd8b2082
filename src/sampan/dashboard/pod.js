// One pod: what it is now and why, what happened to it, what it says, a shell in it, and how it came
// to be.

import {showActions} from "./actions.js";
import {EVENTS, fields, pathOf, PODS} from "./api.js";
import {age, h, plain, setText, show} from "./dom.js";
import {eventTable, newestFirst, rowOf} from "./events.js";
import {journeyView} from "./journey.js";
import {yamlLink} from "./kinds.js";
import {follow, problemOf} from "./live.js";
import {logView} from "./logs.js";
import {allStatuses, causeOf, containersOf, lookOf, LOOKS, statusOf} from "./pods.js";
import {owners} from "./object.js";
import {decisionView} from "./scheduling.js";
import {terminalView} from "./terminal.js";
import {usageView} from "./usage.js";
import {whyView} from "./why.js";

export async function view(place, scope, [namespace, name]) {
  const parts = {
    state: h("p", {role: "status", class: "state"}),
    why: h("section", {"aria-label": "Why"}),
    facts: h("dl", {class: "facts"}),
    usage: h("dl", {class: "figures usage"}),
    owners: h("div"),
    actions: h("p", {class: "choices"}),
    journey: h("section", {"aria-labelledby": "journey-title"}),
    decision: h("section", {"aria-labelledby": "decision-title"}),
    events: h("div"),
    logs: h("section", {"aria-labelledby": "logs-title"}),
    terminal: h("section", {"aria-label": "Terminal"}),
  };
  show(
    place,
    h("p", {class: "quiet"}, h("a", {href: "#/table/-/v1/pods"}, "pods"), ` in ${plain(namespace)}`),
    h("h1", {}, plain(name)),
    parts.owners, parts.actions, parts.state, parts.why, parts.facts, parts.usage,
    h("h2", {}, "Events"), parts.events, parts.logs, parts.terminal, parts.journey, parts.decision,
    h("p", {}, h("a", {href: yamlLink(PODS, namespace, name)}, "YAML, and who owns which field")),
  );
  const journey = journeyView(parts.journey, scope, namespace, name);
  const decision = decisionView(parts.decision, namespace, name);
  const logs = logView(parts.logs, scope, namespace, name);
  const terminal = terminalView(parts.terminal, scope, namespace, name);
  const selectors = {fieldSelector: fields({"metadata.name": name})};
  const why = whyView(parts.why, name, namespace);
  usageView(parts.usage, scope, PODS, namespace, name);
  let last = null;
  let events = [];
  follow(pathOf(PODS, namespace), scope, (live) => {
    const pod = [...live.items.values()][0] ?? null;
    showState(parts, pod, last, live);
    if (pod && pod.metadata.uid !== last?.metadata.uid) {
      show(parts.owners, owners(pod));
      showActions(parts.actions, PODS, pod);
    }
    if (!pod) show(parts.actions);
    if (pod) last = pod;
    why.changed(pod, events);
    journey.changed(pod ?? last);
    decision.changed(pod ?? last);
    logs.changed(pod);
    terminal.changed(pod);
  }, selectors);
  const table = eventTable(parts.events, scope, `Events of ${name}`);
  const about = {fieldSelector: fields({"involvedObject.kind": "Pod", "involvedObject.name": name})};
  follow(pathOf(EVENTS, namespace), scope, (live) => {
    if (live.state === "forbidden") show(parts.events, h("p", {class: "problem"}, plain(problemOf(live, "events"))));
    else table.setRows(newestFirst(live.items.values()).map(rowOf));
    events = newestFirst(live.items.values()).reverse();
    why.changed(last, events);
  }, about);
}

function showState(parts, pod, last, live) {
  const problem = problemOf(live, "this pod");
  parts.state.className = `state ${pod ? LOOKS[lookOf(pod)] : ""}`;
  if (problem) setText(parts.state, plain(problem));
  else if (pod) setText(parts.state, plain([statusOf(pod), causeOf(pod)].filter(Boolean).join(": ")));
  else if (live.state === "live") setText(parts.state, last ? "Gone" : "There is no such pod");
  if (!pod) return;
  const facts = [
    ["Node", pod.spec.nodeName ?? "none yet"], ["Address", pod.status?.podIP ?? "none yet"],
    ["Age", age(pod.metadata.creationTimestamp)], ["QoS", pod.status?.qosClass ?? ""],
    ...containersOf(pod).map(({name}) => [`Container ${name}`, containerState(pod, name)]),
  ];
  show(parts.facts, facts.map(([term, text]) => h("div", {}, h("dt", {}, plain(term)), h("dd", {}, plain(text)))));
}

function containerState(pod, name) {
  const status = allStatuses(pod).find((item) => item.name === name);
  if (!status) return "waiting";
  const [state, detail] = Object.entries(status.state ?? {})[0] ?? ["waiting", {}];
  const restarts = status.restartCount ? `, ${status.restartCount} restarts` : "";
  return `${state}${detail?.reason ? ` (${detail.reason})` : ""}${status.ready ? ", ready" : ""}${restarts}`;
}

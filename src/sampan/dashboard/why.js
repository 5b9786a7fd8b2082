// Why a pod is not as it should be, and what to do: as `sampan why` says it.
//
// Invariant: the server is sent what this user has read, and answers what follows from it. Where it
// is not asked, or does not answer, the containers' own words stand here.

import {get, pathOf, NODES, post} from "./api.js";
import {h, plain, show} from "./dom.js";
import {allStatuses} from "./pods.js";

const PATH = "/sampan/v1/diagnosis";

export function whyView(place, name, namespace) {
  let asked = "";
  const draw = async (pod, events) => {
    const wanted = JSON.stringify([pod.metadata.resourceVersion, events.length, events.at(-1)?.count]);
    if (wanted === asked) return;
    asked = wanted;
    const findings = await findingsOf(pod, events);
    if (wanted === asked) show(place, findings.length ? found(findings, `sampan why pod/${name} -n ${namespace}`) : []);
  };
  return {
    changed(pod, events) {
      if (pod) draw(pod, events);
    },
  };
}

async function findingsOf(pod, events) {
  if (!pod.spec.nodeName) return unscheduled(pod);
  try {
    return (await post(PATH, {pod, events, ...(await nodeOf(pod))})).findings;
  } catch {
    return ownWords(pod);
  }
}

// Null: it is gone. One that may not be seen is not sent.
async function nodeOf(pod) {
  try {
    return {node: await get(pathOf(NODES, "", pod.spec.nodeName))};
  } catch (error) {
    return error.status === 404 ? {node: null} : {};
  }
}

function unscheduled(pod) {
  const said = (pod.status?.conditions ?? []).find((item) => item.type === "PodScheduled" && item.status === "False");
  if (!said) return [];
  const advice = "the scheduler's decision below says which node refused it for what";
  return [{where: "scheduler", what: said.reason, why: said.message ?? "", advice}];
}

function ownWords(pod) {
  return allStatuses(pod).flatMap(({name, state = {}, lastState = {}}) => {
    const ended = state.terminated ?? lastState.terminated;
    const waits = state.waiting;
    if (!waits?.message && !ended?.exitCode) return [];
    const last = ended?.exitCode ? `ended with ${ended.exitCode}${ended.reason ? ` (${ended.reason})` : ""}` : "";
    return [{where: `container ${name}`, what: waits?.reason ?? ended.reason, why: [waits?.message, last].filter(Boolean).join("; "), advice: ""}];
  });
}

function found(findings, command) {
  const advice = findings.filter((item) => item.advice);
  return [
    h("h2", {id: "why-title"}, "Why"),
    h("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Why, scrollable"},
      h("table", {class: "small"},
        h("thead", {}, h("tr", {}, ["Where", "What", "Why"].map((title) => h("th", {scope: "col"}, title)))),
        h("tbody", {}, findings.map((item) => h("tr", {},
          h("th", {scope: "row"}, plain(item.where)), h("td", {}, plain(item.what)), h("td", {}, plain(item.why))))))),
    advice.length > 0 && [h("h3", {}, "What to do"), h("ul", {}, advice.map((item) => h("li", {}, `${plain(item.where)}: ${plain(item.advice)}`)))],
    h("p", {class: "quiet"}, "In a terminal: ", h("code", {}, plain(command))),
  ];
}

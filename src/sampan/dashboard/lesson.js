// The lesson: one pod, step by step, with what this program and the original do there.
//
// The text is ARCHITECTURE.md's own, as `sampan tour` has it (/sampan/v1/lesson). The learner makes
// the pod with kubectl: this page only reads.

import {get, pathOf, PODS} from "./api.js";
import {h, plain, seconds, setText, show} from "./dom.js";
import {follow} from "./live.js";
import {containersOf, lookOf} from "./pods.js";

export async function view(place, scope, [wanted], namespace) {
  const {steps} = await get("/sampan/v1/lesson");
  const at = Math.min(Math.max(Number(wanted) || 1, 1), steps.length) - 1;
  const own = namespace || "default";
  const now = h("section", {"aria-labelledby": "now-title"});
  show(place, stepView(steps[at], steps.length), now, buttons(at, steps.length));
  scope.listen(document, "keydown", (event) => {
    if (event.target.closest("input, select, textarea, [tabindex='0']")) return;
    if (event.key === "ArrowRight" && at + 1 < steps.length) location.hash = `#/lesson/${at + 2}`;
    if (event.key === "ArrowLeft" && at) location.hash = `#/lesson/${at}`;
  });
  followNewest(now, scope, own, steps[at]);
}

function stepView(step, count) {
  const {original} = step;
  return [
    h("h1", {}, `${step.number}. ${plain(step.title)}`),
    h("progress", {max: count, value: step.number, "aria-label": `Step ${step.number} of ${count}`}),
    h("p", {class: "lesson"}, plain(step.idea ?? "")),
    h("details", {},
      h("summary", {}, "Where it happens in the source"),
      h("p", {class: "lesson"}, plain(step.text).split("`").map((text, at) => (at % 2 ? h("code", {}, text) : text)))),
    h("dl", {class: "facts"},
      h("div", {}, h("dt", {}, "Done here by"), h("dd", {}, h("code", {}, `${plain(step.function)}, line ${step.line}`))),
      h("div", {}, h("dt", {}, "The original"), h("dd", {}, plain(original.does), " ", h("code", {}, plain(original.file))))),
  ];
}

function buttons(at, count) {
  return h("p", {class: "search"},
    at > 0 && h("a", {class: "button", href: `#/lesson/${at}`}, "Back"),
    at + 1 < count && h("a", {class: "button", href: `#/lesson/${at + 2}`}, "Next"),
    h("span", {class: "quiet"}, "or with the arrow keys"));
}

// The newest pod of the namespace is the one that the lesson is about.
function followNewest(place, scope, namespace, step) {
  const title = h("h2", {id: "now-title"}, "Your pod");
  const state = h("p", {role: "status"});
  const steps = h("ul");
  show(place, title, state, steps);
  let seen = "";
  follow(pathOf(PODS, namespace), scope, async (live) => {
    const pods = [...live.items.values()];
    const created = (pod) => pod.metadata.creationTimestamp;
    const pod = pods.reduce((newest, item) => (!newest || created(item) >= created(newest) ? item : newest), null);
    if (!pod) {
      setText(state, live.state === "live" ? `There is none in ${plain(namespace)} yet. Make one: sampan run hello` : plain(live.problem));
      return;
    }
    setText(state, `${plain(pod.metadata.name)}: ${lookOf(pod)}, on ${plain(pod.spec.nodeName ?? "no node yet")}, ${containersOf(pod).length} containers`);
    const key = pod.metadata.uid + pod.metadata.resourceVersion;
    if (key === seen) return;
    seen = key;
    show(steps, (await ownSteps(pod, step)).map((text) => h("li", {}, text)));
  });
}

// What the server noted of this step, of this pod.
async function ownSteps(pod, step) {
  const {namespace, name, uid} = pod.metadata;
  try {
    const found = await get(`/sampan/v1/trace/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`);
    const trace = found.traces.find((item) => item.uid === uid);
    const own = (trace?.spans ?? []).filter((span) => step.spans.some((head) => span.name.startsWith(head)));
    return own.map((span) => `${plain(span.lane)}: ${plain(span.name)}, ${seconds(span.ended - span.began)}`);
  } catch {
    return [];
  }
}

// What a pod is doing, in one word and one colour. Pure.

export const LOOKS = {
  Pending: "pending",
  Starting: "starting",
  Running: "running",
  "Not ready": "notready",
  Failing: "failing",
  Terminating: "terminating",
  Succeeded: "succeeded",
  Failed: "failed",
  Unknown: "unknown",
};
// What a container may wait for without anything being wrong.
const ON_ITS_WAY = new Set(["ContainerCreating", "PodInitializing"]);

export function lookOf(pod) {
  const phase = pod.status?.phase ?? "Unknown";
  if (pod.metadata.deletionTimestamp) return "Terminating";
  if ((phase === "Pending" || phase === "Running") && isFailing(pod)) return "Failing";
  if (phase === "Pending") return pod.spec?.nodeName ? "Starting" : "Pending";
  if (phase === "Running") return isReady(pod) ? "Running" : "Not ready";
  return LOOKS[phase] ? phase : "Unknown";
}

// A container waits for something that does not come by itself.
function isFailing(pod) {
  return allStatuses(pod).some(({state}) => state?.waiting?.reason && !ON_ITS_WAY.has(state.waiting.reason));
}

// STATUS, as kubectl prints it.
export function statusOf(pod) {
  const {status = {}, metadata, spec = {}} = pod;
  if (metadata.deletionTimestamp) return status.reason === "NodeLost" ? "Unknown" : "Terminating";
  const gates = (status.conditions ?? []).find((item) => item.type === "PodScheduled" && item.reason === "SchedulingGated");
  const start = status.reason || (gates ? "SchedulingGated" : status.phase) || "Unknown";
  return initWord(spec, status) ?? containersWord(status, start);
}

function initWord(spec, {initContainerStatuses = []}) {
  const all = spec.initContainers ?? [];
  for (const [at, {name, state = {}, started, ready}] of initContainerStatuses.entries()) {
    const restarts = all.find((item) => item.name === name)?.restartPolicy === "Always";
    if (state.terminated?.exitCode === 0 || (restarts && started && (ready || state.running))) continue;
    if (state.terminated) return `Init:${endWord(state.terminated)}`;
    const waits = state.waiting?.reason;
    return waits && waits !== "PodInitializing" ? `Init:${waits}` : `Init:${at}/${all.length}`;
  }
  return null;
}

function containersWord({containerStatuses = [], conditions = []}, start) {
  let word = start;
  let runs = false;
  for (const {state = {}, ready} of [...containerStatuses].reverse()) {
    if (state.waiting?.reason) word = state.waiting.reason;
    else if (state.terminated) word = endWord(state.terminated);
    else if (ready && state.running) runs = true;
  }
  if (word !== "Completed" || !runs) return word;
  return conditions.some((item) => item.type === "Ready" && item.status === "True") ? "Running" : "NotReady";
}

function endWord({reason, signal, exitCode}) {
  return reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode}`);
}

function isReady(pod) {
  return (pod.status.conditions ?? []).some((item) => item.type === "Ready" && item.status === "True");
}

export function allStatuses(pod) {
  return ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"].flatMap((key) => pod.status?.[key] ?? []);
}

export function restartsOf(pod) {
  return allStatuses(pod).reduce((sum, status) => sum + (status.restartCount ?? 0), 0);
}

export function podLink(pod) {
  return `#/pod/${encodeURIComponent(pod.metadata.namespace)}/${encodeURIComponent(pod.metadata.name)}`;
}

export function containersOf(pod) {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])];
}

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
  if (phase === "Running") return isTrue(pod, "Ready") ? "Running" : "Not ready";
  return LOOKS[phase] ? phase : "Unknown";
}

// A container waits for something that does not come by itself.
function isFailing(pod) {
  return allStatuses(pod).some(({state}) => state?.waiting?.reason && !ON_ITS_WAY.has(state.waiting.reason));
}

// STATUS, as kubectl prints it: what apiserver/printers/pods.py says (a test compares the two).
export function statusOf(pod) {
  const {status = {}, metadata, spec = {}} = pod;
  if (metadata.deletionTimestamp && status.reason === "NodeLost") return "Unknown";
  if (metadata.deletionTimestamp && !["Succeeded", "Failed"].includes(status.phase)) return "Terminating";
  const gated = (status.conditions ?? []).some((item) => item.type === "PodScheduled" && item.reason === "SchedulingGated");
  const start = gated ? "SchedulingGated" : status.reason || status.phase || "";
  const init = initWord(spec, status);
  return init && !isTrue(pod, "Initialized") ? init : containersWord(pod, init || start);
}

function initWord(spec, {initContainerStatuses = []}) {
  const all = spec.initContainers ?? [];
  for (const [at, {name, state = {}, started}] of initContainerStatuses.entries()) {
    const stays = all.find((item) => item.name === name)?.restartPolicy === "Always";
    if ((state.terminated && !state.terminated.exitCode) || (stays && started)) continue;
    if (state.terminated) return `Init:${endWord(state.terminated)}`;
    const waits = state.waiting?.reason;
    return waits && waits !== "PodInitializing" ? `Init:${waits}` : `Init:${at}/${all.length}`;
  }
  return "";
}

function containersWord(pod, start) {
  let [word, failed, runs] = [start, "", false];
  for (const {state = {}, ready} of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    if (state.waiting?.reason) word = state.waiting.reason;
    else if (state.terminated) {
      word = endWord(state.terminated);
      if (state.terminated.exitCode) failed = word;
    } else if (ready && state.running) runs = true;
  }
  if (word !== "Completed") return word;
  if (runs && isTrue(pod, "Ready")) return "Running";
  return failed || (runs ? "NotReady" : "Completed");
}

function endWord({reason, signal, exitCode}) {
  return reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode ?? 0}`);
}

function isTrue(pod, type) {
  return (pod.status?.conditions ?? []).some((item) => item.type === type && item.status === "True");
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

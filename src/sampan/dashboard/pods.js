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

// What keeps it, in the words of whoever knows: its container's, else those of a condition.
export function causeOf(pod) {
  for (const {state = {}, lastState = {}} of allStatuses(pod)) {
    const {reason, message} = state.waiting ?? {};
    if (reason === "CrashLoopBackOff" && lastState.terminated) return endedText(lastState.terminated);
    if (reason && !ON_ITS_WAY.has(reason) && message) return message;
    if (state.terminated?.exitCode) return endedText(state.terminated);
  }
  const conditions = (pod.status?.conditions ?? []).filter((item) => item.status === "False" && item.message);
  return (conditions.find((item) => item.type === "PodScheduled") ?? conditions[0])?.message ?? "";
}

function endedText({exitCode, reason, message}) {
  const last = (message ?? "").trim().split("\n").pop();
  return `exit code ${exitCode ?? 0}${reason ? ` (${reason})` : ""}${last ? `: ${last}` : ""}`;
}

// The look of a row that the server printed, by its columns; "" where nothing is to be said of it.
export function lookOfRow(plural, {Status = "", Ready = ""}) {
  if (plural === "pods") return LOOKS[podWordLook(Status, Ready)];
  if (plural === "nodes") return Status.startsWith("Ready") ? "running" : Status.startsWith("NotReady") ? "failed" : "unknown";
  const [ready, wanted] = String(Ready).split("/");
  if (wanted !== undefined) return ready === wanted ? "running" : "notready";
  return {Active: "running", Bound: "running", Running: "running", Available: "running", Pending: "pending", Complete: "succeeded",
    Terminating: "terminating", Failed: "failed", Lost: "failed", Released: "unknown"}[Status] ?? "";
}

function podWordLook(word, ready) {
  if (LOOKS[word] && word !== "Running") return word;
  if (word === "Running") return new Set(String(ready).split("/")).size === 1 ? "Running" : "Not ready";
  if (word === "Completed") return "Succeeded";
  if (word === "SchedulingGated") return "Pending";
  if (["Error", "OOMKilled", "Evicted", "DeadlineExceeded", "NodeAffinity", "NodeShutdown"].includes(word)) return "Failed";
  return ON_ITS_WAY.has(word) || /^Init:\d+\/\d+$/.test(word) ? "Starting" : "Failing";
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

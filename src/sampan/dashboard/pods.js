// What a pod is doing, in one word and one colour. Pure.

export const LOOKS = {
  Pending: "pending",
  Starting: "starting",
  Running: "running",
  "Not ready": "notready",
  Terminating: "terminating",
  Succeeded: "succeeded",
  Failed: "failed",
  Unknown: "unknown",
};

export function lookOf(pod) {
  const phase = pod.status?.phase ?? "Unknown";
  if (pod.metadata.deletionTimestamp) return "Terminating";
  if (phase === "Pending") return pod.spec?.nodeName ? "Starting" : "Pending";
  if (phase === "Running") return isReady(pod) ? "Running" : "Not ready";
  return LOOKS[phase] ? phase : "Unknown";
}

function isReady(pod) {
  return (pod.status.conditions ?? []).some((item) => item.type === "Ready" && item.status === "True");
}

export function podLink(pod) {
  return `#/pod/${encodeURIComponent(pod.metadata.namespace)}/${encodeURIComponent(pod.metadata.name)}`;
}

export function containersOf(pod) {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])];
}

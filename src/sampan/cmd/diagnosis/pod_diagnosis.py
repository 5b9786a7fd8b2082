"""Why a pod that has a node is not Ready, or restarts, and what to do about it. Pure.

Job: a pod's status, its events and its node → findings, the one that holds up the others first.
Invariant: every finding names its evidence: what the API says, in its own words.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, is_deleted, meta_of, name_of
from sampan.api.rules import conditions
from sampan.api.rules.pods import init_containers, is_sidecar
from sampan.cmd.diagnosis.pod_remedies import FAILED, PULL, advice_for, ended_why
from sampan.core.fast_dataclass import dataclass

_PULL_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
ALWAYS = (
    "imagePullPolicy is Always (the default with :latest and without a tag), so the registry is "
    "asked even where the node has the image: set IfNotPresent to run one that was imported"
)
_NEVER_RAN = ("StartError", "ContainerCannotRun")  # there is no log of it
_PROBES = {"readiness": "Readiness", "startup": "Startup", "liveness": "Liveness"}


@dataclass(frozen=True, slots=True)
class Finding:
    where: str  # the pod, its node, or a container
    what: str  # the state, in one or two words
    why: str  # what the API says about it
    advice: str = ""


def diagnosis(pod: Obj, events: Iterable[Obj] = (), node: Obj | None = None) -> list[Finding]:
    """`events`: those about the pod, the oldest first; `node`: the one it is on, if it is there."""
    noted = _Events(list(events))
    over = _over(pod)
    if over is not None:
        return [over]
    found = [*_going(pod), *_node(pod, node)]
    found += [*_volumes(noted), *_devices(noted)] if not _all_started(pod) else []
    found += [*_sick_devices(pod), *_sandbox(pod, noted)]
    waiting = _initializing(pod, noted)
    found += waiting
    if not waiting:
        for status in _statuses(pod, "containerStatuses"):
            found += _container(pod, status, noted, "container")
        found += _gates(pod)
    return found


class _Events:
    """What events say; the last of each reason counts."""

    def __init__(self, events: Sequence[Obj]) -> None:
        self._events = events

    def last(self, reason: str, container: str = "", containing: str = "") -> str:
        for event in reversed(self._events):
            field = (event.get("involvedObject") or {}).get("fieldPath") or ""
            message = str(event.get("message") or "")
            if (
                event.get("reason") == reason
                and (not container or f"{{{container}}}" in field or not field)
                and containing in message
            ):
                return message
        return ""


def _over(pod: Obj) -> Finding | None:
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return Finding("pod", "Succeeded", "all of its containers ended with success")
    if status.get("phase") != "Failed":
        return None
    reason, message = status.get("reason") or "", str(status.get("message") or "")
    if not reason:
        ended = [
            f"{item['name']}: {ended_why(item['state']['terminated'])}"
            for item in _statuses(pod, "initContainerStatuses", "containerStatuses")
            if ((item.get("state") or {}).get("terminated") or {}).get("exitCode")
        ]
        advice = f"read `kubectl logs {name_of(pod)} --all-containers`; restartPolicy is " + str(
            (pod.get("spec") or {}).get("restartPolicy")
        )
        return Finding("pod", "Failed", "; ".join(ended) or "its containers failed", advice)
    return Finding("pod", f"Failed ({reason})", message, advice_for(FAILED, reason, message))


def _going(pod: Obj) -> list[Finding]:
    if not is_deleted(pod):
        return []
    since = str(meta_of(pod).get("deletionTimestamp"))
    held = meta_of(pod).get("finalizers")
    if held:
        names = ", ".join(held)
        advice = "whoever set the finalizer must remove it; look for that controller"
        return [Finding("pod", "Terminating", f"deleted at {since}, held by {names}", advice)]
    return [Finding("pod", "Terminating", f"to be gone at {since}")]


def _node(pod: Obj, node: Obj | None) -> list[Finding]:
    name = (pod.get("spec") or {}).get("nodeName") or ""
    if node is None:
        if not name:
            return []
        advice = "delete the pod with --force; its controller makes another one"
        return [Finding(f"node {name}", "gone", "there is no such node any more", advice)]
    ready = conditions.condition_of(node, "Ready")
    if ready is not None and ready.get("status") != "True":
        advice = f"look at the kubelet on {name}; what the pod's status says may be old"
        why = f"{ready.get('reason', '')}: {ready.get('message', '')}"
        return [Finding(f"node {name}", "not Ready", why, advice)]
    return []


def _volumes(events: _Events) -> list[Finding]:
    for reason in ("FailedAttachVolume", "FailedMount", "FailedMapVolume"):
        if message := events.last(reason):
            like = "FailedMount" if reason == "FailedMapVolume" else reason  # of a block device
            return [Finding("volumes", reason, message, advice_for(FAILED, like, message))]
    return []


def _devices(events: _Events) -> list[Finding]:
    reason = "FailedPrepareDynamicResources"
    message = events.last(reason)
    if not message:
        return []
    return [Finding("devices", reason, message, advice_for(FAILED, reason, message))]


def _sick_devices(pod: Obj) -> list[Finding]:
    """What a container runs with, whatever it says itself."""
    return [
        Finding(
            f"container {status.get('name')}",
            "device unhealthy",
            f"{item.get('resourceID')} of {resource.get('name')} is {item.get('health')}",
            "look at the log of its driver on the node; a pod that is deleted gives it back, and"
            " the next one gets another",
        )
        for status in _statuses(pod, "containerStatuses")
        for resource in status.get("allocatedResourcesStatus") or ()
        for item in resource.get("resources") or ()
        if item.get("health") == "Unhealthy"
    ]


def _sandbox(pod: Obj, events: _Events) -> list[Finding]:
    message = events.last("FailedCreatePodSandBox")
    if not message or _all_started(pod) or conditions.is_true(pod, "PodReadyToStartContainers"):
        return []
    advice = advice_for(FAILED, "FailedCreatePodSandBox", message)
    return [Finding("pod", "no sandbox", message, advice)]


def _initializing(pod: Obj, events: _Events) -> list[Finding]:
    """The first init container that is not through: those after it have not begun."""
    sidecars = {
        container.get("name") for container in init_containers(pod) if is_sidecar(container)
    }
    for status in _statuses(pod, "initContainerStatuses"):
        state = status.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") == 0:
            continue
        if status.get("name") in sidecars:
            if status.get("started") or conditions.is_true(pod, "Initialized"):
                continue
            return _container(pod, status, events, "sidecar")
        found = _container(pod, status, events, "init container")
        if found or "running" not in state:
            return found
        since = (state["running"] or {}).get("startedAt")
        advice = (
            f"the other containers wait for it; `kubectl logs {name_of(pod)} -c {status['name']}`"
        )
        where = f"init container {status['name']}"
        return [Finding(where, "running", f"it is at work since {since}", advice)]
    return []


def _container(pod: Obj, status: Obj, events: _Events, kind: str) -> list[Finding]:
    name, state = status.get("name") or "", status.get("state") or {}
    where, restarts = f"{kind} {name}", int(status.get("restartCount") or 0)
    if "waiting" in state:
        return _waiting(pod, where, name, status, events)
    if ended := state.get("terminated"):
        if kind == "container" and not ended.get("exitCode"):
            return []
        logs = f"`kubectl logs {name_of(pod)} -c {name}`"
        return [Finding(where, "ended", ended_why(ended), f"read {logs}")]
    found = []
    if not status.get("started", True):
        found += _unproven(pod, where, name, events, "startup")
    elif not status.get("ready"):
        found += _unproven(pod, where, name, events, "readiness")
    if restarts:
        found.append(_restarts(pod, where, name, status, events))
    return found


def _waiting(pod: Obj, where: str, name: str, status: Obj, events: _Events) -> list[Finding]:
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason") or "", str(waiting.get("message") or "")
    if reason in _PULL_REASONS:
        # Not the "Error: ImagePullBackOff" that follows it, and says nothing.
        why = events.last("Failed", name, "Failed to pull") or message
        advice = advice_for(PULL, reason, f"{why} {message}")
        if _container_spec(pod, name).get("imagePullPolicy") == "Always":
            advice += f"; {ALWAYS}"
        return [Finding(where, reason, why, advice)]
    if reason == "CrashLoopBackOff":
        return [_restarts(pod, where, name, status, events)]
    if reason in ("", "ContainerCreating", "PodInitializing"):
        if (pulling := events.last("Pulling", name)) and not events.last("Pulled", name):
            return [Finding(where, "starting", pulling, "wait: the image is on its way")]
        return []
    return [Finding(where, reason, message, advice_for(FAILED, reason, message))]


def _restarts(pod: Obj, where: str, name: str, status: Obj, events: _Events) -> Finding:
    last = (status.get("lastState") or {}).get("terminated") or {}
    times = int(status.get("restartCount") or 0)
    loops = "waiting" in (status.get("state") or {})
    why = f"{times} restart(s); the last run ended: {ended_why(last)}"
    killed = events.last("Killing", name, "liveness") or events.last("Killing", name, "startup")
    if killed and last.get("reason") != "OOMKilled":
        probe = "liveness" if "liveness" in killed else "startup"
        message = events.last("Unhealthy", name, _PROBES[probe])
        why = f"{times} restart(s); its {probe} probe fails: {message or killed}"
        advice = _about_probe(pod, name, probe)
    else:
        reason, said = str(last.get("reason") or ""), f"exit {last.get('exitCode')}"
        never_ran = reason in _NEVER_RAN
        said += f" {last.get('message')}" if never_ran else ""  # the runtime's words, not its own
        advice = advice_for(FAILED, reason, said)
        limit = _limit(pod, name)
        if last.get("reason") == "OOMKilled" and limit:
            advice += f" (it is {limit})"
        if not never_ran:
            advice += f"; `kubectl logs {name_of(pod)} -c {name} --previous` shows its last words"
    return Finding(where, "CrashLoopBackOff" if loops else "restarted", why, advice)


def _unproven(pod: Obj, where: str, name: str, events: _Events, probe: str) -> list[Finding]:
    message = events.last("Unhealthy", name, _PROBES[probe])
    if not message and not _probe(pod, name, probe):
        return []
    why = message or f"its {probe} probe has not succeeded yet"
    return [Finding(where, "not Ready", why, _about_probe(pod, name, probe))]


def _about_probe(pod: Obj, name: str, probe: str) -> str:
    written = _probe(pod, name, probe)
    for kind in ("httpGet", "tcpSocket", "grpc", "exec"):
        if kind in written:
            how = written[kind] or {}
            port, path = how.get("port"), how.get("path") or ""
            target = " ".join(how.get("command") or ()) if kind == "exec" else f"port {port} {path}"
            return (
                f"the {probe} probe asks {kind} {target.strip()} within "
                f"{written.get('timeoutSeconds', 1)}s: does the program answer there, and in time?"
            )
    return f"see whether the {probe} probe asks the right thing"


def _gates(pod: Obj) -> list[Finding]:
    missing = [
        str(gate.get("conditionType"))
        for gate in (pod.get("spec") or {}).get("readinessGates") or ()
        if not conditions.is_true(pod, str(gate.get("conditionType")))
    ]
    if not missing or not conditions.is_true(pod, "ContainersReady"):
        return []
    advice = "whoever owns the condition must set it; is that controller at work?"
    return [Finding("pod", "not Ready", f"readiness gates not met: {', '.join(missing)}", advice)]


def _all_started(pod: Obj) -> bool:
    statuses = list(_statuses(pod, "initContainerStatuses", "containerStatuses"))
    return bool(statuses) and all(
        "waiting" not in (status.get("state") or {}) for status in statuses
    )


def _statuses(pod: Obj, *kinds: str) -> Iterable[Obj]:
    for kind in kinds:
        yield from (pod.get("status") or {}).get(kind) or ()


def _container_spec(pod: Obj, name: str) -> Obj:
    spec = pod.get("spec") or {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if container.get("name") == name:
            found: Obj = container
            return found
    return {}


def _probe(pod: Obj, name: str, probe: str) -> Obj:
    found: Obj = _container_spec(pod, name).get(f"{probe}Probe") or {}
    return found


def _limit(pod: Obj, name: str) -> str:
    limits = (_container_spec(pod, name).get("resources") or {}).get("limits") or {}
    return str(limits.get("memory") or "")

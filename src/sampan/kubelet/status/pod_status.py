"""A pod's status as the API shows it, from what the runtime has.

Job: (pod, observed, why containers wait, now) → status. Pure.
Invariant: a phase that is terminal in the API stays.
Invariant: a pod is shown as over only when none of its containers can run any more: others take its
    place as soon as they hear of it.
Invariant: a condition's transition time changes only when its status does.
Invariant: conditions of others (readiness gates, DisruptionTarget) are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from sampan.api.objects import Obj, meta_of, spec_of, time_text
from sampan.api.rules.node_agent.restart_rules import is_on
from sampan.api.rules.pods import (
    TERMINAL_PHASES,
    containers,
    init_containers,
    is_host_network,
    is_sidecar,
)
from sampan.api.rules.qos import qos_class
from sampan.core.fast_dataclass import dataclass, replace
from sampan.kubelet.contracts.probes_hook import NO_CHECKS, Checks
from sampan.kubelet.contracts.resize_state import Applied, InProgress, Pending
from sampan.kubelet.contracts.runtime import (
    ObservedPod,
    RuntimeFeatures,
    newest_sandbox,
    ready_sandbox,
)
from sampan.kubelet.contracts.spec import restarts_after_exit
from sampan.kubelet.contracts.verdict import Verdict, Waiting
from sampan.kubelet.status import pod_level_resources, restart_all_containers
from sampan.kubelet.status.container_status import container_statuses, ephemeral_statuses, with_ends
from sampan.kubelet.status.normalized import normalized
from sampan.kubelet.status.phase import phase_of

# Written by the node; everything else in `conditions` belongs to others.
RESIZE = ("PodResizePending", "PodResizeInProgress")  # there only while they hold
GOES = (
    "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", *RESIZE,
)  # fmt: skip
OWNED = (*GOES, restart_all_containers.CONDITION)

# The reason of a DisruptionTarget that is the node's own doing.
BY_KUBELET = "TerminationByKubelet"


@dataclass(frozen=True, slots=True)
class Facts:
    """What beside the pod and the runtime goes into a status."""

    now: float
    node_ips: Sequence[str] = ()
    runtime_name: str = "containerd"
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    checks: Checks = NO_CHECKS
    verdict: Verdict | None = None
    ending: bool = False  # terminating, and every container has ended
    pending: Pending | None = None  # a resize that was not granted
    resizing: InProgress | None = None
    applied: Applied = field(default_factory=dict)  # what containers got after their creation
    features: RuntimeFeatures = RuntimeFeatures()
    restarting: bool = False  # all containers: those that are gone were removed for it


def pod_status(pod: Obj, observed: ObservedPod | None, facts: Facts) -> Obj:
    old: Obj = pod.get("status") or {}
    if restart_all_containers.is_restarting(pod, observed):
        facts = replace(facts, restarting=True)
    inits, normals = container_statuses(pod, observed, facts)
    if _is_over(old):
        phase = old["phase"]
    elif facts.verdict is not None:
        phase = "Failed"
    else:
        phase = phase_of(
            pod, inits, normals, has_begun=_has_begun(pod, observed), ending=facts.ending
        )
    status: Obj = {"phase": phase}
    generation = meta_of(pod).get("generation")
    if generation:
        status["observedGeneration"] = generation
    status["conditions"] = _conditions(pod, observed, phase, inits, normals, facts)
    for name in ("reason", "message"):
        if facts.verdict is not None:
            status[name] = getattr(facts.verdict, name)
        elif old.get(name) and old.get("phase") in TERMINAL_PHASES:
            status[name] = old[name]
    status["startTime"] = old.get("startTime") or time_text(facts.now)
    status["qosClass"] = old.get("qosClass") or qos_class(pod)
    status |= pod_level_resources.pod_level_status(pod, facts.applied)
    status |= _addresses(pod, old, observed, facts)
    if inits:
        status["initContainerStatuses"] = inits
    if normals:
        status["containerStatuses"] = normals
    ephemeral = ephemeral_statuses(pod, observed, facts)
    if ephemeral:
        status["ephemeralContainerStatuses"] = ephemeral
    return normalized(pod, status)


def _is_over(status: Obj) -> bool:
    return status.get("phase") in TERMINAL_PHASES


def _has_begun(pod: Obj, observed: ObservedPod | None) -> bool:
    """A normal container was made in the sandbox that there is."""
    sandbox = newest_sandbox(observed)
    if observed is None or sandbox is None:
        return False
    names = {container["name"] for container in containers(pod)}
    return any(item.name in names and item.sandbox_id == sandbox.id for item in observed.containers)


def rejected_status(pod: Obj, verdict: Verdict, now: float) -> Obj:
    """Of a pod of which nothing was ever begun: as upstream, nothing is said of its containers, and
    of the conditions those of others stay."""
    old: Obj = pod.get("status") or {}
    status: Obj = {"phase": "Failed", "reason": verdict.reason, "message": verdict.message}
    generation = meta_of(pod).get("generation")
    if generation:
        status["observedGeneration"] = generation
    theirs = [item for item in old.get("conditions") or () if item["type"] not in OWNED]
    status["conditions"] = theirs
    status["startTime"] = old.get("startTime") or time_text(now)
    status["qosClass"] = old.get("qosClass") or qos_class(pod)
    return status


def finished_status(status: Obj, pod: Obj) -> Obj:
    """Of a pod of which nothing is left; one that was never shown to end has failed. `pod`: as its
    node last read it."""
    inits, normals = with_ends(
        status.get("initContainerStatuses") or [], status.get("containerStatuses") or [], pod
    )
    ends = {"initContainerStatuses": inits, "containerStatuses": normals}
    phase = status["phase"] if _is_over(status) else "Failed"
    return {**status, "phase": phase, **{key: ends[key] for key in ends if ends[key]}}


def held_back(status: Obj, shown: Obj) -> Obj:
    """As upstream: while something of the pod may still run, its end is not told. `shown` is what
    was told before."""
    if not _is_over(status) or _is_over(shown):
        return status
    why: Obj = {key: shown[key] for key in ("reason", "message") if key in shown}
    held = {key: value for key, value in status.items() if key not in ("reason", "message")}
    return {**held, "phase": shown.get("phase") or "Pending", **why}


def has_ended(pod: Obj, status: Obj) -> bool:
    """Is every container over for good that the pod is there for? Sidecars may still run."""
    if _is_over(status):
        return True
    normals = status.get("containerStatuses") or []
    ends = [normal["state"].get("terminated") for normal in normals]
    if not ends or None in ends:
        return False
    by_name = {container["name"]: container for container in containers(pod)}
    return not any(
        restarts_after_exit(pod, by_name[normal["name"]], end["exitCode"])
        for normal, end in zip(normals, ends, strict=True)
    )


def _addresses(pod: Obj, old: Obj, observed: ObservedPod | None, facts: Facts) -> Obj:
    addresses: Obj = {}
    if facts.node_ips:
        addresses["hostIP"] = facts.node_ips[0]
        addresses["hostIPs"] = [{"ip": ip} for ip in facts.node_ips]
    sandbox = ready_sandbox(observed)
    ips: Sequence[str] = ()
    if is_host_network(pod):
        ips = facts.node_ips
    elif sandbox is not None:
        ips = sandbox.ips
    elif old.get("podIPs"):
        # As upstream: an ended pod keeps showing the address that it had.
        ips = [item["ip"] for item in old["podIPs"]]
    if ips:
        addresses["podIP"] = ips[0]
        addresses["podIPs"] = [{"ip": ip} for ip in ips]
    return addresses


def _conditions(
    pod: Obj,
    observed: ObservedPod | None,
    phase: str,
    inits: list[Obj],
    normals: list[Obj],
    facts: Facts,
) -> list[Obj]:
    old = {item["type"]: item for item in (pod.get("status") or {}).get("conditions") or ()}
    # Of a pod that ends, the sandbox is being taken down while this is written.
    sandbox = None if facts.ending else ready_sandbox(observed)
    has_network = sandbox is not None and (sandbox.host_network or bool(sandbox.ips))
    containers_ready = _containers_ready(pod, phase, normals, inits)
    made: list[Obj] = [
        *_resize_conditions(facts),
        *_disruption_condition(facts.verdict),
        {"type": "PodReadyToStartContainers", "status": "True" if has_network else "False"},
        {"type": "Initialized", **_initialized(pod, phase, inits, normals, old)},
        {"type": "Ready", **_ready(pod, containers_ready, old)},
        {"type": "ContainersReady", **containers_ready},
        {"type": "PodScheduled", "status": "True"},
        *restart_all_containers.condition(pod, observed, phase),
    ]
    _date(made, old, meta_of(pod).get("generation"), time_text(facts.now))
    return [item for name, item in old.items() if name not in RESIZE] + made


def _date(made: list[Obj], old: dict[str, Obj], generation: int | None, moment: str) -> None:
    """Each says since when it is as it is. What they replace is taken out of `old`."""
    for condition in made:
        is_general = condition["type"] != restart_all_containers.CONDITION  # as upstream
        if generation and is_general and "observedGeneration" not in condition:
            condition["observedGeneration"] = generation
        before, since = old.pop(condition["type"], None), moment
        if before is not None and before.get("status") == condition["status"]:
            since = before.get("lastTransitionTime") or moment
        # As the API shows it: what is written is then told from what is there by one comparison.
        condition |= {"lastProbeTime": None, "lastTransitionTime": since}


def _disruption_condition(verdict: Verdict | None) -> list[Obj]:
    if verdict is None or not verdict.disruption:
        return []
    why = verdict.disruption
    return [{"type": "DisruptionTarget", "status": "True", "reason": BY_KUBELET, "message": why}]


def _resize_conditions(facts: Facts) -> list[Obj]:
    made: list[Obj] = []
    if facts.pending is not None:
        made.append({"type": "PodResizePending", "status": "True", "reason": facts.pending.reason,
                     "message": facts.pending.message,
                     "observedGeneration": facts.pending.generation})  # fmt: skip
    if facts.resizing is not None:
        made.append({"type": "PodResizeInProgress", "status": "True",
                     "observedGeneration": facts.resizing.generation})  # fmt: skip
        if facts.resizing.error:
            made[-1] |= {"reason": "Error", "message": facts.resizing.error}
    return made


def _initialized(
    pod: Obj, phase: str, inits: list[Obj], normals: list[Obj], old: Mapping[str, Obj]
) -> Obj:
    told = _initialized_condition(pod, phase, inits, normals)
    was = (old.get("Initialized") or {}).get("status") == "True"
    if told["status"] == "False" and was and is_on():
        return {"status": "True"}  # as upstream: init containers that run again change nothing
    return told


def _initialized_condition(pod: Obj, phase: str, inits: list[Obj], normals: list[Obj]) -> Obj:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    if any("waiting" not in normal["state"] for normal in normals):
        return {"status": "True"}
    incomplete = []
    for container, status in zip(init_containers(pod), inits, strict=True):
        if is_sidecar(container):
            done = bool(status.get("started"))
        else:
            done = (status["state"].get("terminated") or {"exitCode": 1})["exitCode"] == 0
        if not done:
            incomplete.append(container["name"])
    if not incomplete:
        return {"status": "True"}
    return {
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }


def _containers_ready(pod: Obj, phase: str, normals: list[Obj], inits: list[Obj]) -> Obj:
    if phase == "Succeeded":
        return {"status": "False", "reason": "PodCompleted"}
    if phase == "Failed":
        return {"status": "False", "reason": "PodFailed"}
    sidecars = {container["name"] for container in init_containers(pod) if is_sidecar(container)}
    counted = [init for init in inits if init["name"] in sidecars] + normals
    unready = [item["name"] for item in counted if not item.get("ready")]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _ready(pod: Obj, containers_ready: Obj, old: Mapping[str, Obj]) -> Obj:
    if containers_ready["status"] != "True":
        return dict(containers_ready)
    messages = []
    for gate in spec_of(pod).get("readinessGates") or ():
        name = gate["conditionType"]
        if name not in old:
            messages.append(
                f'corresponding condition of pod readiness gate "{name}" does not exist.'
            )
        elif (status := old[name].get("status")) != "True":
            messages.append(
                f'the status of pod readiness gate "{name}" is not "True", but {status}'
            )
    if not messages:
        return {"status": "True"}
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(messages)}

"""Why an object of any kind is not as it should be. Pure.

Job: an object, the events about it, and its pods where it has some → one sentence on its state,
    and findings.
Invariant: every finding names its evidence: what the API says, in its own words.
"""

from collections.abc import Iterable, Mapping, Sequence

from sampan.api.objects import Obj, is_deleted, meta_of, name_of, spec_of, status_of
from sampan.api.rules import conditions, pods
from sampan.cmd.diagnosis.pod_diagnosis import Finding, diagnosis
from sampan.cmd.diagnosis.pod_remedies import Advice, advice_for
from sampan.core.fast_dataclass import dataclass

MOST_PODS = 3
MOST_EVENTS = 3
# By kind: which condition is bad when it has which status. `*` is of every other kind.
BAD: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Deployment": {
        "Available": ("False",), "Progressing": ("False",), "ReplicaFailure": ("True",),
    },
    "ReplicaSet": {"ReplicaFailure": ("True",)},
    "ReplicationController": {"ReplicaFailure": ("True",)},
    "Job": {"Failed": ("True",), "FailureTarget": ("True",), "Suspended": ("True",)},
    "HorizontalPodAutoscaler": {
        "AbleToScale": ("False",), "ScalingActive": ("False",), "ScalingLimited": ("True",),
    },
    "Node": {
        "Ready": ("False", "Unknown"), "MemoryPressure": ("True",), "DiskPressure": ("True",),
        "PIDPressure": ("True",), "NetworkUnavailable": ("True",),
    },
    "Namespace": {
        "NamespaceDeletionDiscoveryFailure": ("True",),
        "NamespaceDeletionGroupVersionParsingFailure": ("True",),
        "NamespaceDeletionContentFailure": ("True",), "NamespaceContentRemaining": ("True",),
        "NamespaceFinalizersRemaining": ("True",),
    },
    "CustomResourceDefinition": {
        "Established": ("False",), "NamesAccepted": ("False",), "NonStructuralSchema": ("True",),
    },
    "APIService": {"Available": ("False",)},
    "PodDisruptionBudget": {"DisruptionAllowed": ("False",)},
    "PersistentVolumeClaim": {
        "FileSystemResizePending": ("True",), "ControllerResizeError": ("True",),
        "NodeResizeError": ("True",), "ModifyVolumeError": ("True",),
    },
    "*": {
        **dict.fromkeys(
            ("Ready", "Available", "Established", "Accepted", "Programmed", "ResolvedRefs",
             "Healthy"),
            ("False", "Unknown"),
        ),
        "Conflicted": ("True",), "PartiallyInvalid": ("True",),
    },
}  # fmt: skip
ADVICE: Advice = (
    ("FailedSync", (), "the controller fails at this object, and goes on with the others: its log"
     " has the traceback, which is worth a bug report"),
    ("ProgressDeadlineExceeded", (), "its new pods do not become ready: see the pods below, or go"
     " back with `kubectl rollout undo`"),
    ("MinimumReplicasUnavailable", (), "too few of its pods are available: see the pods below"),
    ("BackoffLimitExceeded", (), "its pods failed too often: read their logs, correct the program,"
     " and create the job again"),
    ("DeadlineExceeded", (), "it ran longer than activeDeadlineSeconds allows"),
    ("JobSuspended", (), "set spec.suspend to false"),
    ("FailedGetScale", (), "its target does not exist or cannot be scaled: see scaleTargetRef"),
    ("FailedGetResourceMetric", (), "pods need resources.requests, and the metrics API must answer:"
     " `kubectl top pods`"),
    ("InvalidSelector", (), "the target's selector matches pods of another controller"),
    ("ScalingDisabled", (), "its target has no replicas: scale it to one or more"),
    ("TooManyReplicas", (), "it wants more than maxReplicas: raise that, if there is room"),
    ("TooFewReplicas", (), "it wants fewer than minReplicas; nothing is wrong"),
    ("NodeStatusUnknown", (), "its kubelet says nothing: does it run, and reach the API server?"),
    ("KubeletNotReady", ("cni", "network"), "its network plugin is not ready: look at its logs"),
    ("KubeletNotReady", (), "look at the kubelet's log there"),
    ("KubeletHasInsufficientMemory", (), "pods are evicted: request what they really need"),
    ("KubeletHasDiskPressure", (), "remove what fills the disk; images are removed by themselves"),
    ("SomeResourcesRemain", (), "they are being deleted; what stays has finalizers"),
    ("SomeFinalizersRemain", (), "whoever set the finalizers must remove them: is it at work?"),
    ("DiscoveryFailed", (), "an aggregated API does not answer: `kubectl get apiservices`"),
    ("InsufficientPods", (), "fewer of its pods are healthy than it asks for"),
    ("SyncFailed", (), "see the message"),
    ("ProvisioningFailed", (), "the volume cannot be made: see the message, and the StorageClass"),
    ("FailedBinding", (), "no volume fits: make one, or name a StorageClass that makes them"),
    ("NotAllowedByListeners", (), "the listener's allowedRoutes say whose routes it takes"),
    ("NoMatchingListenerHostname", (), "give the route a hostname that the listener is for"),
    ("NoMatchingParent", (), "correct sectionName or port of parentRefs"),
    ("RefNotPermitted", (), "a ReferenceGrant in the other namespace permits it"),
    ("PortUnavailable", (), "name a port that is served, or start with `--ingress-ports`"),
    ("", ("exceeded quota",), "raise the ResourceQuota, or ask for less: `kubectl describe quota`"),
    ("", ("violates podsecurity",), "change the pod's securityContext, or the namespace's label"
     " pod-security.kubernetes.io/enforce"),
    ("", ("denied the request",), "a webhook or a policy refuses it: its message says why"),
    ("", ("not found",), "create what is missing"),
)  # fmt: skip


def state_of(obj: Obj) -> str:
    """One clause: how far it is."""
    spec, status = spec_of(obj), status_of(obj)
    match obj["kind"]:
        case "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController":
            wanted = spec.get("replicas", 1)
            paused = ", paused" if spec.get("paused") else ""
            return f"{status.get('readyReplicas') or 0} of {wanted} replicas are ready{paused}"
        case "DaemonSet":
            wanted = status.get("desiredNumberScheduled") or 0
            return f"{status.get('numberReady') or 0} of {wanted} pods are ready"
        case "Job":
            return _job_state(spec, status)
        case "CronJob":
            last = status.get("lastScheduleTime") or "never"
            return f"{'suspended, ' if spec.get('suspend') else ''}last run {last}"
        case "HorizontalPodAutoscaler":
            now, wanted = status.get("currentReplicas") or 0, status.get("desiredReplicas") or 0
            return f"{now} replicas, {wanted} wanted"
        case "Node":
            return "Ready" if conditions.is_true(obj, "Ready") else "not Ready"
        case _:
            return f"phase {status['phase']}" if status.get("phase") else "it exists"


def _job_state(spec: Obj, status: Obj) -> str:
    wanted = spec.get("completions") or 1
    done, failed = status.get("succeeded") or 0, status.get("failed") or 0
    return f"{done} of {wanted} completions, {status.get('active') or 0} active, {failed} failed"


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod of a workload, and what is around it."""

    pod: Obj
    events: Sequence[Obj] = ()
    node: Obj | None = None  # the one it is on; None: there is no such node


def object_findings(
    obj: Obj, events: Sequence[Obj] = (), its_pods: Sequence[PodFacts] = ()
) -> list[Finding]:
    """`events` are those about it, the oldest first; each pod comes with its own."""
    found = [*_going(obj), *_conditions(obj), *_by_spec(obj), *_unattached(obj), *_pods(its_pods)]
    return found + list(_events(events, {finding.why for finding in found}))


def _label(obj: Obj) -> str:
    return f"{obj['kind'].lower()} {name_of(obj)}"


def _going(obj: Obj) -> list[Finding]:
    if not is_deleted(obj):
        return []
    held = [*(meta_of(obj).get("finalizers") or ()), *(spec_of(obj).get("finalizers") or ())]
    why = f"deleted at {meta_of(obj).get('deletionTimestamp')}"
    if not held:
        return [Finding(_label(obj), "Terminating", why)]
    advice = "whoever set the finalizer must remove it; look for that controller"
    return [Finding(_label(obj), "Terminating", f"{why}, held by {', '.join(held)}", advice)]


def _conditions(obj: Obj) -> list[Finding]:
    """Its own, and as the Gateway API has them those of each parent and each listener."""
    status, label = status_of(obj), _label(obj)
    found = _bad_conditions(obj["kind"], label, status)
    for parent in status.get("parents") or ():
        name = (parent.get("parentRef") or {}).get("name")
        found += _bad_conditions(obj["kind"], f"{label} at {name}", parent)
    for listener in status.get("listeners") or ():
        found += _bad_conditions(obj["kind"], f"{label}, listener {listener.get('name')}", listener)
    return found


def _bad_conditions(object_kind: str, label: str, holder: Obj) -> list[Finding]:
    bad = {"SyncFailed": ("True",), **BAD.get(object_kind, BAD["*"])}
    found = []
    for condition in holder.get("conditions") or ():
        kind, status = str(condition.get("type")), str(condition.get("status"))
        if status not in bad.get(kind, ()):
            continue
        reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
        why = f"{reason}: {message}" if message else reason
        advice = advice_for(ADVICE, reason, message)
        found.append(Finding(label, f"{kind}={status}", why, advice))
    return found


def _by_spec(obj: Obj) -> Iterable[Finding]:
    """What the object itself asks for, and people forget."""
    spec, kind = spec_of(obj), obj["kind"]
    if kind == "Node" and spec.get("unschedulable"):
        advice = f"`kubectl uncordon {name_of(obj)}`"
        yield Finding(_label(obj), "cordoned", "spec.unschedulable is true", advice)
    if kind == "Node":
        for taint in spec.get("taints") or ():
            text = f"{taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
            yield Finding(_label(obj), "tainted", text, "only pods that tolerate it come here")
    if kind == "Deployment" and spec.get("paused"):
        advice = f"`kubectl rollout resume deployment/{name_of(obj)}`"
        yield Finding(_label(obj), "paused", "spec.paused is true", advice)
    if kind in ("Deployment", "StatefulSet", "ReplicaSet") and spec.get("replicas") == 0:
        advice = f"`kubectl scale {kind.lower()}/{name_of(obj)} --replicas=1`"
        yield Finding(_label(obj), "scaled to 0", "spec.replicas is 0", advice)
    if kind == "CronJob" and spec.get("suspend"):
        yield Finding(_label(obj), "suspended", "spec.suspend is true", "set it to false")


def _unattached(obj: Obj) -> Iterable[Finding]:
    """A route of the Gateway API of which nobody says anything."""
    parents = spec_of(obj).get("parentRefs")
    if parents and not status_of(obj).get("parents"):
        names = ", ".join(str(each.get("name")) for each in parents)
        why = f"no controller says anything of {names}"
        advice = "is there such a Gateway, of a class that somebody serves? `sampan up --ingress`"
        yield Finding(_label(obj), "not taken up", why, f"{advice} serves the class sampan")


def _pods(its_pods: Sequence[PodFacts]) -> Iterable[Finding]:
    """Of the pods that are not ready the first few, whose trouble is mostly everybody's."""
    ill = [
        facts for facts in its_pods
        if not pods.is_ready(facts.pod) and pods.phase(facts.pod) != "Succeeded"
    ]  # fmt: skip
    for facts in ill[:MOST_PODS]:
        pod = facts.pod
        where = f"pod {name_of(pod)}"
        details = diagnosis(pod, facts.events, facts.node)
        scheduled = conditions.condition_of(pod, "PodScheduled") or {}
        if scheduled.get("status") == "False":
            advice = f"`sampan why pod/{name_of(pod)}` says what would let it fit"
            yield Finding(where, "Pending", str(scheduled.get("message") or ""), advice)
        for finding in details:
            inner = "" if finding.where == "pod" else f", {finding.where}"
            yield Finding(f"{where}{inner}", finding.what, finding.why, finding.advice)
    if len(ill) > MOST_PODS:
        yield Finding("pods", "more", f"{len(ill) - MOST_PODS} other pods are not ready either")


def _events(events: Sequence[Obj], said: set[str]) -> Iterable[Finding]:
    """The last warnings, each once, unless a condition has said the same."""
    seen: dict[tuple[str, str], Finding] = {}
    for event in events:
        if event.get("type") != "Warning":
            continue
        reason, message = str(event.get("reason") or ""), str(event.get("message") or "").strip()
        if any(message and message in why for why in said):
            continue
        where = str((event.get("involvedObject") or {}).get("kind") or "object").lower()
        finding = Finding(f"event of {where}", reason, message, advice_for(ADVICE, reason, message))
        seen.pop((reason, message), None)
        seen[reason, message] = finding
    return list(seen.values())[-MOST_EVENTS:]

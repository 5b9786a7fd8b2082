"""What a test waits for, in words and as a question about one object. Pure.

Job: `Available`, `Ready=False`, `exists`, `deleted`, `phase=Running` or a function → Expectation;
    what an object shows instead → a line.
"""

from collections.abc import Callable

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

# What of a status is told besides its conditions.
_TOLD = ("phase", "reason", "message", "replicas", "readyReplicas", "active", "succeeded", "failed")
Question = Callable[[Obj | None], bool]
Condition = str | Callable[[Obj], object]


class NotAsExpected(AssertionError):
    """The cluster does not show what the test expects."""


@dataclass(frozen=True, slots=True)
class Expectation:
    text: str
    holds: Question


def expectation_of(condition: Condition) -> Expectation:
    if callable(condition):
        name = getattr(condition, "__name__", "the function")
        text = "what the function asks for" if name == "<lambda>" else name
        return Expectation(text, _asking(condition))
    match condition:
        case "exists":
            return Expectation("it exists", lambda obj: obj is not None)
        case "deleted":
            return Expectation("it is deleted", lambda obj: obj is None)
    name, _, value = condition.partition("=")
    if name == "phase":
        return Expectation(f"its phase is {value}", lambda obj: _phase(obj) == value)
    wanted = value or "True"
    return Expectation(f"{name} is {wanted}", lambda obj: _status(obj, name) == wanted)


def shown(obj: Obj | None) -> str:
    """What the cluster has instead: one line for each thing that its status says."""
    if obj is None:
        return "  it does not exist"
    status = obj.get("status") or {}
    lines = [f"  {name}: {status[name]}" for name in _TOLD if status.get(name) not in (None, "")]
    for condition in status.get("conditions") or ():
        why = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
        told = f" ({why})" if why else ""
        lines.append(f"  {condition['type']}: {condition['status']}{told}")
    if (obj.get("metadata") or {}).get("deletionTimestamp"):
        lines.append("  it is being deleted")
    return "\n".join(lines) or "  its status says nothing"


def _asking(function: Callable[[Obj], object]) -> Question:
    return lambda obj: obj is not None and bool(function(obj))


def _phase(obj: Obj | None) -> str:
    return str(((obj or {}).get("status") or {}).get("phase") or "")


def _status(obj: Obj | None, name: str) -> str:
    for condition in ((obj or {}).get("status") or {}).get("conditions") or ():
        if condition["type"].lower() == name.lower():
            return str(condition["status"])
    return ""


def _replicas_ready(obj: Obj) -> bool:
    """As `kubectl rollout status`: all of them, of the newest generation."""
    wanted = (obj.get("spec") or {}).get("replicas", 1)
    status = obj.get("status") or {}
    current = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
    return bool(current and status.get("readyReplicas", 0) == wanted)


def _daemons_ready(obj: Obj) -> bool:
    status = obj.get("status") or {}
    current = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
    return bool(
        current and status.get("numberReady", 0) == status.get("desiredNumberScheduled", -1)
    )


READY: dict[str, Condition] = {
    "Deployment": "Available",
    "Job": "Complete",
    "ReplicaSet": _replicas_ready,
    "StatefulSet": _replicas_ready,
    "DaemonSet": _daemons_ready,
    "Namespace": "phase=Active",
    "PersistentVolumeClaim": "phase=Bound",
    "CustomResourceDefinition": "Established",
}

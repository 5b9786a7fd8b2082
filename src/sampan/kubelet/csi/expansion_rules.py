"""Whether a volume has to grow on this node, and what its claim then says.

Job: PersistentVolume and claim → what to ask of the driver; the outcome → the claim's next status.
Invariant: a claim never says more than its volume has on the node.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, annotations_of, spec_of
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.api.rules.conditions import is_true, without_condition
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.csi.csi_volume import CsiVolume

PENDING, IN_PROGRESS = "NodeResizePending", "NodeResizeInProgress"
INFEASIBLE = "NodeResizeInfeasible"
RESIZE_ERROR = "NodeResizeError"
NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required"
_CONDITIONS = frozenset(
    {"Resizing", "FileSystemResizePending", "ControllerResizeError", RESIZE_ERROR}
)


@dataclass(frozen=True, slots=True)
class Expansion:
    size: str  # a quantity
    recovers: bool  # the resizer keeps track of its steps in the claim's status
    is_told: bool = False  # the claim says so already: another node was faster
    user_changed_mind: bool = False  # the claim asks for another size by now


def storage_of(amounts: Obj | None) -> Quantity:
    written = (amounts or {}).get("storage")
    return value_of(written) if written else ZERO


def may_have_grown(volume: CsiVolume) -> bool:
    """By what was read before it was mounted: nothing else has to be read then."""
    if not volume.capacity or not volume.claimed:
        return volume.claim is not None
    return value_of(volume.claimed) < value_of(volume.capacity)


def expansion_of(volume: Obj, claim: Obj, known: Quantity) -> Expansion | None:
    """`known`: how large the volume is on this node, as far as is known. None: nothing is to do."""
    status = claim.get("status") or {}
    size = storage_of(spec_of(volume).get("capacity"))
    if not known < size:
        return None
    step = (status.get("allocatedResourceStatuses") or {}).get("storage") or ""
    allocated = (status.get("allocatedResources") or {}).get("storage")
    if not step and not allocated:
        return Expansion(spec_of(volume)["capacity"]["storage"], recovers=False)
    wanted = allocated or spec_of(volume)["capacity"]["storage"]
    asked = storage_of((spec_of(claim).get("resources") or {}).get("requests"))
    is_told = not storage_of(status.get("capacity")) < value_of(wanted) and not step
    expansion = Expansion(wanted, True, is_told, asked != value_of(wanted))
    if is_told:
        shared = "ReadWriteMany" in (spec_of(claim).get("accessModes") or ())
        return expansion if shared and NOT_REQUIRED not in annotations_of(claim) else None
    return expansion if step in (PENDING, IN_PROGRESS) else None


def status_in_progress(claim: Obj) -> Obj:
    return _with_step(claim, IN_PROGRESS)


def status_finished(claim: Obj, size: str) -> Obj:
    status = _with_step(claim, None)
    status["capacity"] = {**(status.get("capacity") or {}), "storage": size}
    kept = [item for item in _conditions(claim) if item.get("type") not in _CONDITIONS]
    return {**status, "conditions": kept or None}


def status_failed(claim: Obj, why: str, now: str, *, infeasible: bool) -> Obj:
    status = _with_step(claim, INFEASIBLE) if infeasible else dict(claim.get("status") or {})
    if is_true(claim, RESIZE_ERROR):
        return status
    condition = {
        "type": RESIZE_ERROR,
        "status": "True",
        "lastTransitionTime": now,
        "message": f"failed to expand pvc with {why}",
    }
    others = without_condition(_conditions(claim), RESIZE_ERROR)
    return {**status, "conditions": [*others, condition]}


def _with_step(claim: Obj, step: str | None) -> Obj:
    """A null takes a field away."""
    status = dict(claim.get("status") or {})
    steps = {**(status.get("allocatedResourceStatuses") or {}), "storage": step}
    status["allocatedResourceStatuses"] = steps
    return status


def _conditions(claim: Obj) -> Sequence[Obj]:
    found: Sequence[Obj] = (claim.get("status") or {}).get("conditions") or ()
    return found

"""What a controller may ask for: the actions that plans are made of, and the plan itself.

Job: name the writes to the API as values, so that a plan can be compared, printed and tested.
Invariant: values only; whoever performs them is controllers/perform.py.
"""

from collections.abc import Callable, Iterator, Sequence

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, name_of, namespace_of, revision_of, uid_of
from sampan.api.patch.merge_patch import merge_patch_between
from sampan.api.resources import Resource
from sampan.client import contract
from sampan.client.contract import PatchType, Propagation
from sampan.core.fast_dataclass import dataclass

# Errors that mean: it is already as it should be.
Settled = tuple[type[ApiError], ...]


@dataclass(frozen=True, slots=True)
class Create:
    resource: Resource
    obj: Obj
    settled: Settled = ()


@dataclass(frozen=True, slots=True)
class Update:
    """The whole object; it carries the resourceVersion that it was made from."""

    resource: Resource
    obj: Obj
    subresource: str = ""
    settled: Settled = ()


@dataclass(frozen=True, slots=True)
class Patch:
    resource: Resource
    namespace: str
    name: str
    patch: contract.Patch
    patch_type: PatchType = "merge"
    subresource: str = ""
    settled: Settled = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Gone already, or replaced by another of the same name, is as good as done."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    revision: int = 0
    grace_seconds: int | None = None
    propagation: Propagation | None = "Background"


@dataclass(frozen=True, slots=True)
class Record:
    """An event about an object: `about` from client.events.reference."""

    about: Obj
    type: str
    reason: str
    message: str


Action = Create | Update | Patch | Delete | Record


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action: the object that the server answered, or the error."""

    action: Action
    result: Obj | None = None
    error: ApiError | None = None


def answered(
    outcomes: Sequence[Outcome], action: type[Action], resource: Resource
) -> Iterator[Obj]:
    """The objects that the server answered to such actions of that kind."""
    for outcome in outcomes:
        asked = outcome.action
        is_such = isinstance(asked, action) and getattr(asked, "resource", None) is resource
        if is_such and outcome.error is None and outcome.result is not None:
            yield outcome.result


@dataclass(frozen=True, slots=True)
class Plan:
    actions: Sequence[Action] = ()
    # What follows from how the actions went: events, status, a further step. Pure, like the plan.
    then: "Callable[[Sequence[Outcome]], Sequence[Action] | Plan] | None" = None
    # Look again after so long, even if nothing happens; None: an event will tell.
    again_seconds: float | None = None
    # A kind of action that fails holds up no other kind: none needs what another makes.
    apart: bool = False
    unfinished: bool = False  # more of the same is to be done: a pause would be time lost


NOTHING = Plan()


def next_step(plan: Plan, outcomes: Sequence[Outcome]) -> Plan | None:
    """What follows after the plan's own actions went so."""
    if plan.then is None:
        return None
    following = plan.then(outcomes)
    return following if isinstance(following, Plan) else Plan(following)


def deletion(
    resource: Resource,
    obj: Obj,
    *,
    propagation: Propagation | None = "Background",
    grace_seconds: int | None = None,
) -> Delete:
    """Of this very object, not of another one with its name."""
    return Delete(
        resource,
        namespace_of(obj),
        name_of(obj),
        uid_of(obj),
        propagation=propagation,
        grace_seconds=grace_seconds,
    )


def status_patch(resource: Resource, obj: Obj, status: Obj) -> Patch | None:
    """What differs from the status that `obj` has, None where nothing does. No precondition on the
    revision: a status has one writer, and that is the controller."""
    changes = merge_patch_between(obj.get("status") or {}, status)
    if not changes:
        return None
    patch = {"metadata": {"uid": uid_of(obj)}, "status": changes}
    return Patch(resource, namespace_of(obj), name_of(obj), patch, subresource="status")


def merge_patch(resource: Resource, obj: Obj, patch: Obj, subresource: str = "") -> Patch:
    """A merge patch that fails where the object is no longer the one that was looked at."""
    meta = {**(patch.get("metadata") or {}), "uid": uid_of(obj)}
    meta["resourceVersion"] = str(revision_of(obj))
    return Patch(
        resource,
        namespace_of(obj),
        name_of(obj),
        {**patch, "metadata": meta},
        subresource=subresource,
    )

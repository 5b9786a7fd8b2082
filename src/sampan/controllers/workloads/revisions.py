"""ControllerRevisions: the history of a template, for DaemonSets and StatefulSets.

Job: the revision of the current template, found or made; who is adopted, which old ones go. Pure.
Invariant: equal templates have equal data; a revision that is used again gets the highest number.
Invariant: a name that another revision has is never waited for: the next one is taken, and counted.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    labels_of,
    name_of,
    namespace_of,
)
from sampan.api.resources import CONTROLLER_REVISIONS, STATEFUL_SETS, Resource
from sampan.client.by_identity import OF_ANY_SIZE, by_identity
from sampan.client.label_index import parsed
from sampan.controllers.actions import Action, Create, Patch, deletion, merge_patch
from sampan.controllers.workloads.pod_control import claim, controller_reference
from sampan.controllers.workloads.template_hash import data_hash, template_hash
from sampan.core.fast_dataclass import dataclass

HASH = "controller-revision-hash"
DATA_HASH = "controller.kubernetes.io/hash"  # of StatefulSets' revisions
MOST_COLLISIONS = 100
Named = Callable[[str], Obj | None]


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of the current template; `action` makes it so, where it is not."""

    obj: Obj
    action: Action | None = None
    collisions: int | None = None  # what the owner's status has to say of names that were taken


def data_of(owner: Obj) -> Obj:
    """In upstream's order too: others compare the bytes."""
    return _data_of(owner["spec"].get("template") or {})


@by_identity(8, OF_ANY_SIZE)
def _data_of(template: Obj) -> Obj:
    found: Obj = _in_order({"spec": {"template": {**template, "$patch": "replace"}}})
    return found


def _in_order(value: Any) -> Any:
    """A copy with its keys in order, at every level."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def hash_of(revision: Obj) -> str:
    return labels_of(revision).get(HASH, "")


def adopted_revisions(resource: Resource, owner: Obj, orphans: Sequence[Obj]) -> list[Patch]:
    """`orphans`: revisions that nobody has and that the owner selects, as those that it left when
    it was deleted without them."""
    reference = controller_reference(resource, owner)
    selector = parsed(owner["spec"].get("selector"))
    claimed = claim(CONTROLLER_REVISIONS, owner, reference, selector, (), orphans)
    return list(claimed.actions)


def current_revision(
    resource: Resource, owner: Obj, history: Sequence[Obj], named: Named = lambda _name: None
) -> Revision:
    """Of `history`, the owner's revisions: the one with today's template, numbered the highest.
    `named`: any revision of the namespace."""
    data, collisions = data_of(owner), (owner.get("status") or {}).get("collisionCount")
    ordered = sorted(history, key=_order)
    highest = _number(ordered[-1]) if ordered else 0
    found = next((item for item in reversed(ordered) if item.get("data") == data), None)
    if found is None:
        return _made(resource, owner, data, highest + 1, named)
    if _number(found) == highest:
        return Revision(found, collisions=collisions)
    renumbered = {**found, "revision": highest + 1}
    patch = merge_patch(CONTROLLER_REVISIONS, found, {"revision": highest + 1})
    return Revision(renumbered, patch, collisions)


def surplus_revisions(
    history: Sequence[Obj], used: Collection[str], limit: int | None
) -> list[Action]:
    """The oldest ones that no pod and no status names, beyond the limit; a negative one keeps
    all."""
    unused = [item for item in history if name_of(item) not in used and hash_of(item) not in used]
    living = sorted((item for item in unused if not is_deleted(item)), key=_order)
    kept = 10 if limit is None else limit
    count = len(living) - kept if kept >= 0 else 0
    return [deletion(CONTROLLER_REVISIONS, item) for item in living[: max(0, count)]]


def _made(resource: Resource, owner: Obj, data: Obj, number: int, named: Named) -> Revision:
    """A new one, under a name that no other revision has."""
    collisions = (owner.get("status") or {}).get("collisionCount")
    for _ in range(MOST_COLLISIONS):
        made = _new(resource, owner, data, number, collisions)
        there = named(name_of(made))
        if there is None:
            break
        if there.get("data") == data:
            return Revision(there, collisions=collisions)
        collisions = (collisions or 0) + 1
    return Revision(made, Create(CONTROLLER_REVISIONS, made), collisions)


def _new(resource: Resource, owner: Obj, data: Obj, number: int, collisions: int | None) -> Obj:
    template = owner["spec"].get("template") or {}
    if resource is STATEFUL_SETS:
        label, word = DATA_HASH, data_hash(data, collisions or 0)
    else:
        label, word = HASH, template_hash(template, collisions)
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": f"{name_of(owner)}-{word}",
            "namespace": namespace_of(owner),
            "labels": {**labels_of(template), label: word},
            "annotations": dict(annotations_of(owner)),
            "ownerReferences": [controller_reference(resource, owner)],
        },
        "data": data,
        "revision": number,
    }


def _order(revision: Obj) -> tuple[int, str, str]:
    created = str((revision.get("metadata") or {}).get("creationTimestamp") or "")
    return _number(revision), created, name_of(revision)


def _number(revision: Obj) -> int:
    return int(revision.get("revision") or 0)

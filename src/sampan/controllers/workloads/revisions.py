"""ControllerRevisions: the history of a template, for DaemonSets and StatefulSets.

Job: the revision of the current template, found or made; which old ones go. Pure.
Invariant: equal templates have equal data; a revision that is used again gets the highest number.
"""

from collections.abc import Collection, Sequence
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
from sampan.controllers.actions import Action, Create, deletion, merge_patch
from sampan.controllers.workloads.pod_control import controller_reference
from sampan.controllers.workloads.template_hash import data_hash, template_hash
from sampan.core.fast_dataclass import dataclass

HASH = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of the current template; `action` makes it so, where it is not."""

    obj: Obj
    action: Action | None = None


def data_of(owner: Obj) -> Obj:
    """In upstream's order too: others compare the bytes."""
    template = {**(owner["spec"].get("template") or {}), "$patch": "replace"}
    found: Obj = _in_order({"spec": {"template": template}})
    return found


def _in_order(value: Any) -> Any:
    """A copy with its keys in order, at every level."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def hash_of(revision: Obj) -> str:
    return labels_of(revision).get(HASH, "")


def current_revision(resource: Resource, owner: Obj, history: Sequence[Obj]) -> Revision:
    """Of `history`, the owner's revisions: the one with today's template, numbered the highest."""
    data = data_of(owner)
    ordered = sorted(history, key=_number)
    highest = _number(ordered[-1]) if ordered else 0
    same = [item for item in ordered if item.get("data") == data]
    if not same:
        made = _new(resource, owner, data, highest + 1)
        return Revision(made, Create(CONTROLLER_REVISIONS, made))
    found = same[-1]
    if _number(found) == highest:
        return Revision(found)
    renumbered = {**found, "revision": highest + 1}
    patch = merge_patch(CONTROLLER_REVISIONS, found, {"revision": highest + 1})
    return Revision(renumbered, patch)


def surplus_revisions(
    history: Sequence[Obj], used: Collection[str], limit: int | None
) -> list[Action]:
    """The oldest ones that no pod and no status names, beyond the limit."""
    unused = [item for item in history if name_of(item) not in used and hash_of(item) not in used]
    living = sorted((item for item in unused if not is_deleted(item)), key=_number)
    count = len(living) - (10 if limit is None else limit)
    return [deletion(CONTROLLER_REVISIONS, item) for item in living[: max(0, count)]]


def _new(resource: Resource, owner: Obj, data: Obj, number: int) -> Obj:
    collisions = (owner.get("status") or {}).get("collisionCount")
    template = owner["spec"].get("template") or {}
    if resource is STATEFUL_SETS:
        word = data_hash(data, collisions or 0)
    else:
        word = template_hash(template, collisions)
    template_labels = labels_of(template)
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": f"{name_of(owner)}-{word}",
            "namespace": namespace_of(owner),
            "labels": {**template_labels, HASH: word},
            "annotations": dict(annotations_of(owner)),
            "ownerReferences": [controller_reference(resource, owner)],
        },
        "data": data,
        "revision": number,
    }


def _number(revision: Obj) -> int:
    return int(revision.get("revision") or 0)

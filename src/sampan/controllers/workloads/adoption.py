"""Adoption and release: orphans that a selector matches, pods that it matches no longer.

Job: for owners of pods that need nothing else of it: what to adopt and to release, and whom a pod
    without a controller wakes.
Invariant: nothing is adopted before the server said that the owner still lives.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    controller_of,
    is_deleted,
    key_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import PODS, Resource
from sampan.api.rules.selectors import LabelSelector
from sampan.client.label_index import ORPHANS, SELECTOR, may_select, parsed, selected
from sampan.controllers.actions import Patch
from sampan.controllers.controller import Caches, View
from sampan.controllers.workloads.pod_control import adopts_any, claim, controller_reference


async def claims(
    view: View, resource: Resource, owner: Obj, owned: Sequence[Obj], finalizers: Sequence[str] = ()
) -> Sequence[Patch]:
    """The patches that make `owned` right. Needs the index ORPHANS of pods. What is adopted
    gets `finalizers`, too, and what is released loses them."""
    if is_deleted(owner):
        return ()
    selector = _selector(owner)
    orphans = selected(view.cache(PODS), ORPHANS, namespace_of(owner), selector)
    if adopts_any(selector, orphans) and not await lives(view, resource, owner):
        orphans = []
    reference = controller_reference(resource, owner)
    patches = claim(PODS, owner, reference, selector, owned, orphans).actions
    if not finalizers:
        return patches
    known = {name_of(item): item for item in (*owned, *orphans)}
    adopted = {name_of(orphan) for orphan in orphans}
    return [
        _with_finalizers(patch, known[patch.name], finalizers, adopted=patch.name in adopted)
        for patch in patches
    ]


def controllers_of(kind: str, old: Obj | None, new: Obj | None) -> set[str]:
    """Keys of those of this kind that have the pod, or had it. Most changes leave its owners as
    they were, and nearly all pods are of another kind or of none."""
    keys: set[str] = set()
    now = new["metadata"].get("ownerReferences") if new is not None else None
    before = old["metadata"].get("ownerReferences") if old is not None else None
    for pod, references in ((new, now), (old, before if before is not now else None)):
        for reference in references or ():
            if reference.get("controller"):
                if reference.get("kind") == kind:
                    assert pod is not None
                    keys.add(f"{namespace_of(pod)}/{reference.get('name', '')}")
                break
    return keys


def is_offered(old: Obj | None, new: Obj | None) -> bool:
    """A pod that nobody has is new, or somebody else may have it now than before. Whoever may have
    had it all along knows of it."""
    if new is None or controller_of(new) is not None:
        return False
    if old is not None and controller_of(old) is None:
        was, now = old["metadata"], new["metadata"]
        if was.get("uid") == now.get("uid") and was.get("labels") == now.get("labels"):
            return False
    return not is_deleted(new)


def may_adopt(
    caches: Caches,
    resource: Resource,
    old: Obj | None,
    new: Obj | None,
    selector_of: Callable[[Obj], LabelSelector] | None = None,
) -> Iterable[str]:
    """Keys of those that match a pod that nobody has. Needs the index SELECTOR."""
    owners = caches(resource)
    # Of most kinds there is none at all.
    if new is None or not owners.index_values(SELECTOR) or not is_offered(old, new):
        return ()
    labels = labels_of(new)
    return [
        key_of(owner)
        for owner in may_select(owners, namespace_of(new), labels)
        if (selector_of or _selector)(owner).matches(labels)
    ]


def _selector(owner: Obj) -> LabelSelector:
    return parsed((owner.get("spec") or {}).get("selector"))


async def lives(view: View, resource: Resource, owner: Obj) -> bool:
    """Asked of the server before an adoption: one that is being deleted must not adopt."""
    try:
        fresh = await view.client.get(resource, namespace_of(owner), name_of(owner))
    except NotFound:
        return False
    return uid_of(fresh) == uid_of(owner) and not is_deleted(fresh)


def _with_finalizers(patch: Patch, pod: Obj, finalizers: Sequence[str], *, adopted: bool) -> Patch:
    before: list[str] = meta_of(pod).get("finalizers") or []
    others = [item for item in before if item not in finalizers]
    assert isinstance(patch.patch, dict)
    wanted = [*others, *finalizers] if adopted else others
    meta = {**patch.patch["metadata"], "finalizers": wanted}
    return replace(patch, patch={"metadata": meta})

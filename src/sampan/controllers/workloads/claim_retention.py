"""persistentVolumeClaimRetentionPolicy: the owners of the claims of a StatefulSet.

Job: the references that a claim should have: it goes with the set, with its pod when the set
    shrinks, or with nobody. Pure.
Invariant: a claim that another controller has, or an earlier set or pod of the same name, is left
    as it is.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, meta_of, name_of, uid_of
from sampan.api.resources import PODS, STATEFUL_SETS, Resource
from sampan.controllers.workloads.pod_control import controller_reference


def references_of(claim: Obj) -> Sequence[Obj]:
    references: Sequence[Obj] = meta_of(claim).get("ownerReferences") or ()
    return references


def wanted_references(owner: Obj, pod: Obj, claim: Obj, *, condemned: bool) -> list[Obj] | None:
    """None where the claim is as it should be, or nobody's to touch. `condemned`: the set has
    shrunk, and the pod has to go."""
    references = references_of(claim)
    if has_stale_reference(claim, STATEFUL_SETS, owner) or has_stale_reference(claim, PODS, pod):
        return None
    others = [item for item in references if not _is_of_set_or_pod(item, owner, pod)]
    foreign = has_other_controller(owner, pod, claim)
    wanted = others if foreign else [*others, *_own_references(owner, pod, condemned=condemned)]
    if {_identity(item) for item in wanted} == {_identity(item) for item in references}:
        return None
    return wanted


def first_references(owner: Obj) -> list[Obj]:
    """Of a claim that is made for a pod that the set should have."""
    with_set, _ = _policy(owner)
    return [controller_reference(STATEFUL_SETS, owner)] if with_set else []


def has_stale_reference(claim: Obj, resource: Resource, obj: Obj) -> bool:
    """To an earlier object of the same name."""
    same = [item for item in references_of(claim) if _names(item, resource, obj)]
    return bool(same) and same[0].get("uid") != uid_of(obj)


def waits_for_collection(owner: Obj, claim: Obj, pod_name: str) -> bool:
    """The claim goes with a pod that is gone: the next pod of that name needs another one."""
    _, with_pod = _policy(owner)
    return with_pod and any(
        item.get("kind") == PODS.kind and item.get("name") == pod_name
        for item in references_of(claim)
    )


def has_other_controller(owner: Obj, pod: Obj, claim: Obj) -> bool:
    """As it matters to who asked for claims to be deleted."""
    if not any(_policy(owner)):
        return False
    for item in references_of(claim):
        if _names(item, STATEFUL_SETS, owner):
            if item.get("uid") != uid_of(owner):
                return True
        elif _names(item, PODS, pod):
            if item.get("uid") != uid_of(pod):
                return True
        elif item.get("controller"):
            return True
    return False


def _own_references(owner: Obj, pod: Obj, *, condemned: bool) -> list[Obj]:
    with_set, with_pod = _policy(owner)
    if with_pod and condemned:
        return [controller_reference(PODS, pod)]
    return [controller_reference(STATEFUL_SETS, owner)] if with_set else []


def _policy(owner: Obj) -> tuple[bool, bool]:
    """Whether claims go with the set, and with a pod that a smaller set has no more."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def _is_of_set_or_pod(reference: Obj, owner: Obj, pod: Obj) -> bool:
    return _names(reference, STATEFUL_SETS, owner) or _names(reference, PODS, pod)


def _names(reference: Obj, resource: Resource, obj: Obj) -> bool:
    known = (reference.get("apiVersion"), reference.get("kind"), reference.get("name"))
    return known == (resource.api_version, resource.kind, name_of(obj))


def _identity(reference: Obj) -> tuple[object, ...]:
    return reference.get("uid"), bool(reference.get("controller"))

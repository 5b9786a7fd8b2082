"""Claims, volumes and their attributes classes that are in use are not deleted under their users.

Job: keep the protection finalizers on what lives; take them off what is to go and is not in use;
    say of bound claims since when no pod uses them, where PersistentVolumeClaimUnusedSinceTime is
    on.
Invariant: a claim stays while a pod that has a node names it, or, of one that was made for a pod,
    until its node is done with the pod; a volume stays while it is Bound;
    a VolumeAttributesClass while a claim or a volume names it.
"""

from collections.abc import Callable, Iterable, Sequence

from sampan.api import features
from sampan.api.objects import Obj, is_deleted, meta_of, name_of, namespace_of, spec_of
from sampan.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTRIBUTES_CLASSES,
    Resource,
)
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import (
    DELETION,
    EXISTENCE,
    PHASE,
    SPEC,
    STATUS,
    WENT,
    interest_of,
    looks_at,
)
from sampan.api.rules.conditions import find, with_condition
from sampan.api.rules.storage import CLAIM_PROTECTION, CLASS_PROTECTION, VOLUME_PROTECTION
from sampan.controllers.actions import NOTHING, Patch, Plan, merge_patch
from sampan.controllers.controller import Caches, Controller, View, Wake, own_key


def claim_protection_controller() -> Controller:
    is_tracked = features.enabled("PersistentVolumeClaimUnusedSinceTime")
    return Controller(
        name="persistentvolumeclaim-protection-controller",
        component="pvc-protection-controller",
        aliases=("pvc-protection",),
        wakes={
            PERSISTENT_VOLUME_CLAIMS: own_key,
            PODS: _claims_in_use if is_tracked else _claims_freed,
        },
        planned=_planned_claim,
        indices={PODS: {"claims": claim_keys}},
        workers=1,
    )


def volume_protection_controller() -> Controller:
    return Controller(
        name="persistentvolume-protection-controller",
        component="pv-protection-controller",
        aliases=("pv-protection",),
        wakes={PERSISTENT_VOLUMES: own_key},
        planned=_planned_volume,
        workers=1,
    )


def attributes_class_protection_controller() -> Controller:
    return Controller(
        name="volumeattributesclass-protection-controller",
        component="vac-protection-controller",
        wakes={
            VOLUME_ATTRIBUTES_CLASSES: own_key,
            PERSISTENT_VOLUME_CLAIMS: _no_longer_named(claim_classes),
            PERSISTENT_VOLUMES: _no_longer_named(volume_classes),
        },
        planned=_planned_class,
        indices={
            PERSISTENT_VOLUME_CLAIMS: {"classes": claim_classes},
            PERSISTENT_VOLUMES: {"classes": volume_classes},
        },
        workers=1,
    )


def plan_claim(claim: Obj, pods: Sequence[Obj], now: float) -> Plan:
    """`pods`: those that name it. Only one that has a node counts: no kubelet starts a pod whose
    claim is on its way out."""
    used = any(pod_facts.node_name(pod) and _has_it(pod, claim) for pod in pods)
    plan = _protection_plan(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION, used)
    is_bound = (claim.get("status") or {}).get("phase") == "Bound"
    if not features.enabled("PersistentVolumeClaimUnusedSinceTime") or not is_bound:
        return plan
    told = None if is_deleted(claim) else _told_of_use(claim, pods, now)
    return plan if told is None else Plan([told], again_seconds=0.0 if plan.actions else None)


def _has_it(pod: Obj, claim: Obj) -> bool:
    """A claim that was made for a pod is free once the node is done with the pod: a deletion in the
    foreground waits for the claim."""
    if not _is_shut_down(pod):
        return True
    named = ((volume.get("persistentVolumeClaim") or {}) for volume in spec_of(pod)["volumes"])
    return any(source.get("claimName") == name_of(claim) for source in named)


def _is_shut_down(pod: Obj) -> bool:
    """As upstream's podIsShutDown: its node is done with it, or it was deleted by force."""
    return is_deleted(pod) and meta_of(pod).get("deletionGracePeriodSeconds") == 0


def _told_of_use(claim: Obj, pods: Iterable[Obj], now: float) -> Patch | None:
    """In its condition Unused; None where it says so already."""
    is_used = not all(_has_ended(pod) for pod in pods)
    conditions: list[Obj] = claim["status"].get("conditions") or []
    before = find(conditions, "Unused")
    if before is not None and (before.get("status") != "True") is is_used:
        return None
    wanted: Obj = {"type": "Unused", "status": "False" if is_used else "True"}
    if is_used:
        wanted |= {"reason": "PodUsingPVC", "message": "A pod is currently referencing this PVC"}
    else:
        why = "No pods are currently referencing this PVC"
        wanted |= {"reason": "NoPodsUsingPVC", "message": why}
    changes = {"status": {"conditions": with_condition(conditions, wanted, now)}}
    return merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, changes, subresource="status")


def _has_ended(pod: Obj) -> bool:
    """For good, or it is to go and nothing of it runs any more."""
    if pod_facts.is_terminal(pod):
        return True
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return is_deleted(pod) and not any("running" in (one.get("state") or {}) for one in statuses)


def plan_volume(volume: Obj) -> Plan:
    used = (volume.get("status") or {}).get("phase") == "Bound"
    return _protection_plan(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION, used)


def plan_class(attributes_class: Obj, *, used: bool) -> Plan:
    """`used`: a claim names it, wants it or has it, or a volume has it."""
    return _protection_plan(VOLUME_ATTRIBUTES_CLASSES, attributes_class, CLASS_PROTECTION, used)


def _protection_plan(resource: Resource, obj: Obj, finalizer: str, used: bool) -> Plan:
    finalizers: list[str] = meta_of(obj).get("finalizers") or []
    there = finalizer in finalizers
    if is_deleted(obj):
        if used or not there:
            return NOTHING
        wanted = [item for item in finalizers if item != finalizer]
    elif there:
        return NOTHING
    else:
        wanted = [*finalizers, finalizer]
    return Plan([merge_patch(resource, obj, {"metadata": {"finalizers": wanted or None}})])


@looks_at(SPEC)
def claim_keys(pod: Obj) -> Iterable[str]:
    return [f"{namespace_of(pod)}/{name}" for name in pod_facts.claim_names(pod)]


@looks_at(EXISTENCE | DELETION | PHASE | STATUS)
def _claims_in_use(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Those of a pod that begins or ceases to use them; a pod's claims never change."""
    if old is not None and new is not None and _stage_of_use(old) == _stage_of_use(new):
        return ()
    pod = new if new is not None else old
    return () if pod is None else claim_keys(pod)


def _stage_of_use(pod: Obj) -> tuple[bool, bool]:
    return _has_ended(pod), _is_shut_down(pod)


@looks_at(WENT | DELETION)
def _claims_freed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Only the end of a use can free a claim; a pod's claims never change."""
    if new is not None:
        return claim_keys(new) if _is_shut_down(new) else ()
    return claim_keys(old) if old is not None else ()


async def _planned_claim(view: View, key: str) -> Plan:
    claim = view.cache(PERSISTENT_VOLUME_CLAIMS).get(key)
    if claim is None:
        return NOTHING
    return plan_claim(claim, view.cache(PODS).by("claims", key), view.now)


async def _planned_volume(view: View, key: str) -> Plan:
    volume = view.cache(PERSISTENT_VOLUMES).get(key)
    return NOTHING if volume is None else plan_volume(volume)


@looks_at(SPEC | STATUS)
def claim_classes(claim: Obj) -> Iterable[str]:
    """The VolumeAttributesClasses that it asks for, has, or is being given."""
    status = claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    named = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        target,
    )
    return {name for name in named if name}


@looks_at(SPEC)
def volume_classes(volume: Obj) -> Iterable[str]:
    name = (volume.get("spec") or {}).get("volumeAttributesClassName")
    return (name,) if name else ()


def _no_longer_named(classes: Callable[[Obj], Iterable[str]]) -> Wake:
    """Only the end of a use can free a class."""

    @looks_at(interest_of(classes).aspects | WENT)
    def wake(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
        before = set(classes(old)) if old is not None else set()
        return before.difference(classes(new) if new is not None else ())

    return wake


async def _planned_class(view: View, key: str) -> Plan:
    found = view.cache(VOLUME_ATTRIBUTES_CLASSES).get(key)
    if found is None:
        return NOTHING
    users = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES)
    used = any(view.cache(resource).count("classes", key) for resource in users)
    return plan_class(found, used=used)

"""PersistentVolume controller: binding of claims and volumes, provisioning, release.

Job: bind a claim to a volume that suits it, ask for one to be made where none does, and say in both
    phases how it stands; release volumes whose claim is gone.
Invariant: a volume names its claim (with uid) before the claim names the volume: two claims can
    never hold one volume, for the first write carries the volume's resourceVersion.
Invariant: a claim that was bound is never bound to anything else; it is Lost at worst.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from sampan.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import CAME, looks_at
from sampan.api.rules.storage import (
    BETA_PROVISIONER,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    class_name_of,
    class_named,
    default_class,
    is_default_class,
    waits_for_consumer,
)
from sampan.api.rules.volumes.in_tree_volumes import driver_instead_of
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Outcome,
    Patch,
    Plan,
    Record,
    merge_patch,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, Later, View
from sampan.controllers.storage.migrated_plugins import (
    claim_patch,
    volume_patch,
    why_not_provisioned,
)
from sampan.controllers.storage.volume_matching import (
    INDICES,
    NEEDS,
    best_match,
    by_shape,
    claims_for,
    is_bound_to,
    mismatch,
    next_claims,
    volumes_for,
)
from sampan.controllers.storage.volume_protection import claim_keys
from sampan.core.fast_dataclass import dataclass

# Some events say that something is still missing: said again before the last one expires.
REMIND_SECONDS = 1800.0
RESYNC_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Claim:
    key: str


@dataclass(frozen=True, slots=True)
class Volume:
    name: str


@dataclass(frozen=True, slots=True)
class Storage:
    """All that a claim may choose from."""

    volumes: Mapping[str, Obj]
    classes: Mapping[str, Obj]
    users: Sequence[str] = ()  # names of the pods that wait with the claim


# Sources of which upstream's controllers know a plugin.
_UNDELETABLE = ("hostPath", "nfs", "fc", "iscsi")


def persistent_volume_binder() -> Controller:
    return Controller(
        name="persistentvolume-binder-controller",
        component="persistentvolume-controller",
        aliases=("persistentvolume-binder",),
        wakes={
            PERSISTENT_VOLUME_CLAIMS: _claim_changed,
            PERSISTENT_VOLUMES: _volume_changed,
            STORAGE_CLASSES: _class_changed,
            PODS: _first_user_came,
        },
        planned=_plan_key,
        indices={
            PERSISTENT_VOLUMES: INDICES,
            PERSISTENT_VOLUME_CLAIMS: {**NEEDS, "class": _class_of_unbound},
            PODS: {"claims": claim_keys},
        },
        workers=1,
    )


def plan_claim(claim: Obj, storage: Storage) -> Plan:
    if BIND_COMPLETED in annotations_of(claim):
        return _bound_claim(claim, storage)
    wanted = claim["spec"].get("volumeName")
    if wanted:
        return _choosy_claim(claim, storage.volumes.get(wanted))
    if class_named(claim) is None:
        chosen = default_class(storage.classes.values())
        if chosen is not None:  # a default class that came later than the claim
            patch = {"spec": {"storageClassName": name_of(chosen)}}
            return Plan([merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, patch)])
    found = storage.classes.get(class_name_of(claim))
    delayed = waits_for_consumer(found)
    volume = best_match(storage.volumes.values(), claim, only_reserved=delayed)
    if volume is not None:
        return _bind(volume, claim)
    if delayed and SELECTED_NODE not in annotations_of(claim):
        return _pending(claim, "Normal", *_waits_for(storage.users))
    return _wanted_from_provisioner(claim, found)


def plan_volume(volume: Obj, claim: Obj | None) -> Plan:
    """`claim`: the one that the volume names, with that very uid; None where it is gone."""
    reference = volume["spec"].get("claimRef")
    if not reference or not reference.get("uid"):
        return _phase(volume, "Available")
    if claim is None:
        return _release(volume)
    holds = claim["spec"].get("volumeName") or ""
    if holds == name_of(volume):
        return _phase(volume, "Bound")
    if not holds:
        return NOTHING  # the claim's own turn comes: a change of the volume wakes it
    if (
        PROVISIONED_BY in annotations_of(volume)
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    ):
        return _release(volume)  # made for a claim that took another one
    return _unbound_volume(volume)


# A claim's turn.


def _waits_for(users: Sequence[str]) -> tuple[str, str]:
    if not users:
        words = "waiting for first consumer to be created before binding"
        return "WaitForFirstConsumer", words
    pods = f"pod {users[0]}" if len(users) == 1 else f"pods {','.join(users)}"
    return "WaitForPodScheduled", f"waiting for {pods} to be scheduled"


def _bound_claim(claim: Obj, storage: Storage) -> Plan:
    name = claim["spec"].get("volumeName") or ""
    if not name:
        words = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        return _lost_claim(claim, "ClaimLost", words)
    volume = storage.volumes.get(name)
    if volume is None:
        words = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        return _lost_claim(claim, "ClaimLost", words)
    reference = volume["spec"].get("claimRef")
    if not reference or reference.get("uid") == uid_of(claim):
        return _bind(volume, claim)
    words = "Two claims are bound to the same volume, this one is bound incorrectly"
    return _lost_claim(claim, "ClaimMisbound", words)


def _choosy_claim(claim: Obj, volume: Obj | None) -> Plan:
    """It names the volume that it wants."""
    if volume is None:
        return _pending(claim)
    name = name_of(volume)
    if volume["spec"].get("claimRef"):
        if is_bound_to(volume, claim):
            return _bind(volume, claim)
        words = f'volume "{name}" already bound to a different claim.'
        return _pending(claim, "Warning", "FailedBinding", words)
    why = mismatch(volume, claim)
    if why is not None:
        words = f'Cannot bind to requested volume "{name}": {why}'
        return _pending(claim, "Warning", "VolumeMismatch", words)
    return _bind(volume, claim)


def _wanted_from_provisioner(claim: Obj, storage_class: Obj | None) -> Plan:
    name = class_name_of(claim)
    if not name:
        words = "no persistent volumes available for this claim and no storage class is set"
        return _pending(claim, "Normal", "FailedBinding", words)
    if storage_class is None:
        words = f'storageclass.storage.k8s.io "{name}" not found'
        return _pending(claim, "Warning", "ProvisioningFailed", words)
    provisioner = str(storage_class.get("provisioner") or "")
    if why := why_not_provisioned(provisioner):
        return _pending(claim, "Warning", "ProvisioningFailed", why)
    provisioner = driver_instead_of(provisioner) or provisioner
    words = (
        "Waiting for a volume to be created either by the external provisioner "
        f"'{provisioner}' or manually by the system administrator. If volume creation is delayed, "
        "please verify that the provisioner is running and correctly registered."
    )
    plan = _pending(claim, "Normal", "ExternalProvisioning", words)
    if annotations_of(claim).get(PROVISIONER) == provisioner:
        return plan
    marks = {PROVISIONER: provisioner, BETA_PROVISIONER: provisioner}
    asked = merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"annotations": marks}})
    return Plan([asked, *plan.actions], again_seconds=plan.again_seconds)


def _bind(volume: Obj, claim: Obj) -> Plan:
    """The volume first; what follows can be repeated by whoever comes next."""
    first = _reservation(volume, claim)

    def then(outcomes: Sequence[Outcome]) -> Sequence[Action]:
        if any(outcome.error is not None for outcome in outcomes):
            return ()
        return _settle(volume, claim)

    return Plan([first], then) if first is not None else Plan(_settle(volume, claim))


def _reservation(volume: Obj, claim: Obj) -> Patch | None:
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") == uid_of(claim):
        return None
    patch: Obj = {
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
                "resourceVersion": str(revision_of(claim)),
            }
        }
    }
    if not reference:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return merge_patch(PERSISTENT_VOLUMES, volume, patch)


def _settle(volume: Obj, claim: Obj) -> list[Action]:
    actions: list[Action] = []
    bound = status_patch(PERSISTENT_VOLUMES, volume, _with_phase(volume, "Bound"))
    if bound is not None:
        actions.append(bound)
    marks = annotations_of(claim)
    wanted = {**marks, BIND_COMPLETED: "yes"}
    if claim["spec"].get("volumeName") != name_of(volume):
        wanted[BOUND_BY_CONTROLLER] = "yes"
    if wanted != marks:
        patch = {
            "metadata": {"uid": uid_of(claim), "annotations": wanted},
            "spec": {"volumeName": name_of(volume)},
        }
        actions.append(
            Patch(
                PERSISTENT_VOLUME_CLAIMS,
                namespace_of(claim),
                name_of(claim),
                patch,
                settled=(NotFound,),
            )
        )
    before: Obj = claim.get("status") or {}
    status = {
        **before,
        "phase": "Bound",
        "accessModes": volume["spec"].get("accessModes") or [],
    }
    # As upstream: only on becoming bound. Later the two may differ while a volume grows.
    if before.get("phase") != "Bound":
        status["capacity"] = volume["spec"].get("capacity") or {}
    # From then on whoever modifies volumes has it.
    attributes = volume["spec"].get("volumeAttributesClassName")
    if before.get("phase") == "Pending" and attributes:
        status["currentVolumeAttributesClassName"] = attributes
    got = status_patch(PERSISTENT_VOLUME_CLAIMS, claim, status)
    return [*actions, got] if got is not None else actions


def _pending(claim: Obj, kind: str = "", reason: str = "", message: str = "") -> Plan:
    status = {**(claim.get("status") or {}), "phase": "Pending"}
    patch = status_patch(PERSISTENT_VOLUME_CLAIMS, claim, status)
    actions: list[Action] = [patch] if patch is not None else []
    if reason:
        actions.append(Record(reference_to(claim), kind, reason, message))
    return Plan(actions, again_seconds=REMIND_SECONDS if reason else None)


def _lost_claim(claim: Obj, reason: str, message: str) -> Plan:
    if (claim.get("status") or {}).get("phase") == "Lost":
        return NOTHING
    patch = status_patch(PERSISTENT_VOLUME_CLAIMS, claim, {"phase": "Lost"})
    event = Record(reference_to(claim), "Warning", reason, message)
    return Plan([event] if patch is None else [patch, event])


# A volume's turn.


def _release(volume: Obj) -> Plan:
    status = volume.get("status") or {}
    if status.get("phase") == "Failed":
        return NOTHING
    policy = volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"
    if status.get("phase") != "Released":
        return _phase(volume, "Released")
    if policy == "Retain":
        return NOTHING
    if MIGRATED_TO in annotations_of(volume) or (policy == "Delete" and _is_foreign(volume)):
        return NOTHING  # whoever made it takes it away, or the driver that it is for
    message = "No recycler plugin found for the volume!"
    if policy == "Delete":
        message = _why_not_deleted(volume)
    reason = f"VolumeFailed{policy}"
    failed = {**status, "phase": "Failed", "message": message}
    patch = status_patch(PERSISTENT_VOLUMES, volume, failed)
    event = Record(reference_to(volume), "Warning", reason, message)
    return Plan([event] if patch is None else [patch, event])


def _why_not_deleted(volume: Obj) -> str:
    """In upstream's words for who has such a plugin, and none who can delete."""
    path = (volume["spec"].get("hostPath") or {}).get("path", "/tmp/")
    if not path.startswith("/tmp/"):  # ours deletes nowhere; upstream's deletes here
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    known = any(volume["spec"].get(source) is not None for source in _UNDELETABLE)
    why = "no deletable volume plugin matched" if known else "no volume plugin matched"
    return f'error getting deleter volume plugin for volume "{name_of(volume)}": {why}'


def _is_foreign(volume: Obj) -> bool:
    """Whose deletion is an external deleter's."""
    return PROVISIONED_BY in annotations_of(volume) or volume["spec"].get("csi") is not None


def _unbound_volume(volume: Obj) -> Plan:
    """Its claim holds another volume. What we reserved is free again; what a user reserved stays
    reserved by name."""
    ours = BOUND_BY_CONTROLLER in annotations_of(volume)
    patch: Obj = {"spec": {"claimRef": None}}
    if ours:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: None}}
    else:
        patch["spec"] = {"claimRef": {"uid": None, "resourceVersion": None}}
    return Plan([merge_patch(PERSISTENT_VOLUMES, volume, patch)])


def _phase(volume: Obj, phase: str) -> Plan:
    patch = status_patch(PERSISTENT_VOLUMES, volume, _with_phase(volume, phase))
    return NOTHING if patch is None else Plan([patch])


def _with_phase(volume: Obj, phase: str) -> Obj:
    kept = {
        key: value
        for key, value in (volume.get("status") or {}).items()
        if key not in ("reason", "message")
    }
    return {**kept, "phase": phase}


# Glue.


async def _plan_key(view: View, key: Claim | Volume) -> Plan:
    volumes = view.cache(PERSISTENT_VOLUMES)
    claims = view.cache(PERSISTENT_VOLUME_CLAIMS)
    if isinstance(key, Volume):
        volume = volumes.get(key.name)
        if volume is None:
            return NOTHING
        first = volume_patch(volume)  # as upstream: it is looked at again as it is then
        if first is not None:
            return Plan([first])
        return plan_volume(volume, _claim_of(volume, claims.get))
    claim = claims.get(key.key)
    if claim is None:
        return NOTHING
    first = claim_patch(claim)
    if first is not None:
        return Plan([first])
    storage = Storage(
        volumes_for(volumes, claim),
        {name_of(class_): class_ for class_ in view.cache(STORAGE_CLASSES).all()},
        _users(view.cache, key.key),
    )
    return plan_claim(claim, storage)


def _users(caches: Caches, key: str) -> list[str]:
    pods = caches(PODS).by("claims", key)
    return sorted(name_of(pod) for pod in pods if not pod_facts.node_name(pod))


def _claim_of(volume: Obj, find: Callable[[str], Obj | None]) -> Obj | None:
    reference = volume["spec"].get("claimRef") or {}
    claim = find(f"{reference.get('namespace')}/{reference.get('name')}")
    return claim if claim is not None and uid_of(claim) == reference.get("uid") else None


def _claim_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Claim | Volume]:
    claim = new if new is not None else old
    if claim is None:
        return
    yield Claim(key_of(claim))
    if name := claim["spec"].get("volumeName"):
        yield Volume(name)
    if new is None:
        # A volume may have been reserved for a claim that never came to know of it.
        for volume in caches(PERSISTENT_VOLUMES).by("claim", key_of(claim)):
            if (volume["spec"].get("claimRef") or {}).get("uid") == uid_of(claim):
                yield Volume(name_of(volume))
    if old is not None:
        claims, volumes = caches(PERSISTENT_VOLUME_CLAIMS), caches(PERSISTENT_VOLUMES)
        for waiting in next_claims(claims, volumes, old, new):
            yield Claim(key_of(waiting))


def _volume_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Claim | Volume]:
    volume = new if new is not None else old
    if volume is None:
        return
    yield Volume(name_of(volume))
    reference = volume["spec"].get("claimRef")
    if reference:
        yield Claim(f"{reference.get('namespace')}/{reference.get('name')}")
        return
    if new is not None and _offer(new) and (old is None or _offer(old) != _offer(new)):
        for claim in claims_for(caches(PERSISTENT_VOLUME_CLAIMS), new):
            yield Claim(key_of(claim))


def _offer(volume: Obj) -> tuple[object, ...]:
    """What of a free volume decides who may have it; nothing of one that is not free."""
    return tuple((shape, labels_of(volume)) for shape in by_shape(volume))


def _class_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Claim]:
    """It concerns those of the class, and those that have none if it may be the default."""
    claims = caches(PERSISTENT_VOLUME_CLAIMS)
    states = [item for item in (old, new) if item is not None]
    names = {name_of(item) for item in states}
    for name in names | ({""} if any(map(is_default_class, states)) else set()):
        for claim in claims.by("class", name):
            yield Claim(key_of(claim))


@looks_at(CAME)
def _first_user_came(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Later]:
    """As with upstream's resync: which pod is waited for is told where that takes long."""
    if old is not None or new is None:
        return
    for key in claim_keys(new):
        claim = caches(PERSISTENT_VOLUME_CLAIMS).get(key)
        if claim is not None and BIND_COMPLETED not in annotations_of(claim):
            yield Later(Claim(key), RESYNC_SECONDS)


def _class_of_unbound(claim: Obj) -> Iterable[str]:
    return () if BIND_COMPLETED in annotations_of(claim) else (class_name_of(claim),)

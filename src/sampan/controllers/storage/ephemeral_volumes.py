"""Generic ephemeral volumes: a claim that lives and goes with its pod.

Job: make `<pod>-<volume>` from the volume's template, owned by the pod.
Invariant: a claim of that name that is not the pod's own is never touched or used.
"""

from collections.abc import Iterable, Mapping

from sampan.api.errors import AlreadyExists
from sampan.api.objects import (
    Obj,
    copy_of,
    is_deleted,
    key_of,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import CAME, looks_at
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import NOTHING, Action, Create, Plan, Record
from sampan.controllers.controller import Caches, Controller, View
from sampan.controllers.storage.volume_protection import claim_keys
from sampan.controllers.workloads.pod_control import controller_reference


def ephemeral_volume_controller() -> Controller:
    return Controller(
        name="ephemeral-volume-controller",
        component="ephemeral_volume",
        aliases=("ephemeral-volume",),
        wakes={PODS: _new_pod, PERSISTENT_VOLUME_CLAIMS: _pods_of_claim},
        planned=_plan_key,
        indices={PODS: {"claims": claim_keys}},
    )


def plan(pod: Obj, claims: Mapping[str, Obj]) -> Plan:
    """`claims`: those of its namespace that bear the names of its ephemeral volumes."""
    if is_deleted(pod) or pod_facts.is_terminal(pod):
        return NOTHING
    actions: list[Action] = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("ephemeral") is None:
            continue
        name = f"{name_of(pod)}-{volume['name']}"
        claim = claims.get(name)
        if claim is None:
            actions.append(_claim_creation(pod, volume, name))
        elif not _is_of(claim, pod):
            words = (
                f"ephemeral volume {volume['name']}: PVC {namespace_of(pod)}/{name} was not "
                f"created for pod {key_of(pod)} (pod is not owner)"
            )
            actions.append(Record(reference_to(pod), "Warning", "FailedBinding", words))
    return Plan(actions)


def _claim_creation(pod: Obj, volume: Obj, name: str) -> Create:
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    given = template.get("metadata") or {}
    meta: Obj = {
        "name": name,
        "namespace": namespace_of(pod),
        "ownerReferences": [controller_reference(PODS, pod)],
    }
    for field in ("labels", "annotations"):
        if given.get(field):
            meta[field] = dict(given[field])
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": copy_of(template.get("spec") or {}),
    }
    return Create(PERSISTENT_VOLUME_CLAIMS, claim, settled=(AlreadyExists,))


def _is_of(claim: Obj, pod: Obj) -> bool:
    owners = meta_of(claim).get("ownerReferences") or ()
    return any(owner.get("uid") == uid_of(pod) for owner in owners)


def _has_ephemeral(pod: Obj) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any(volume.get("ephemeral") is not None for volume in volumes)


@looks_at(CAME)
def _new_pod(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """A pod's volumes never change: once is enough."""
    return (key_of(new),) if old is None and new is not None and _has_ephemeral(new) else ()


def _pods_of_claim(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """One that was deleted too early is made anew, as is one that was in the way."""
    if old is None or new is not None:
        return ()
    return [key_of(pod) for pod in caches(PODS).by("claims", key_of(old)) if _has_ephemeral(pod)]


async def _plan_key(view: View, key: str) -> Plan:
    pod = view.cache(PODS).get(key)
    if pod is None:
        return NOTHING
    cache = view.cache(PERSISTENT_VOLUME_CLAIMS)
    names = pod_facts.claim_names(pod)
    found = {name: cache.get(f"{namespace_of(pod)}/{name}") for name in names}
    return plan(pod, {name: claim for name, claim in found.items() if claim is not None})

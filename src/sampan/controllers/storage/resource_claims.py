"""Claims to devices: made from templates for pods, and given up when their pods are done.

Job: a ResourceClaim for every template that a pod names, and its name in the pod's status; who is
    done is taken off `reservedFor`; a claim without users loses its devices.
Invariant: a claim that is not the pod's own is never used for a template.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    controller_of,
    copy_of,
    is_deleted,
    key_of,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import DELETION, EXISTENCE, NODE, PHASE, SPEC, STATUS, looks_at
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Create,
    Patch,
    Plan,
    Record,
    deletion,
    merge_patch,
)
from sampan.controllers.controller import Caches, Controller, View
from sampan.controllers.workloads.pod_control import controller_reference

FINALIZER = "resource.kubernetes.io/delete-protection"  # as the scheduler sets it
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_POD, _CLAIM = "pod", "claim"
_OF_POD, _BY_TEMPLATE = "pod that owns it", "template"


def resource_claim_controller() -> Controller:
    return Controller(
        name="resourceclaim-controller",
        component="resource_claim",
        aliases=("resource-claim-controller",),
        wakes={
            PODS: _pod_changed,
            RESOURCE_CLAIMS: _claim_changed,
            RESOURCE_CLAIM_TEMPLATES: _template_changed,
        },
        indices={
            RESOURCE_CLAIMS: {_OF_POD: _owning_pod},
            PODS: {_BY_TEMPLATE: _templates_of},
        },
        planned=_plan_key,
    )


def plan_pod(pod: Obj, claims: Sequence[Obj], templates: Mapping[str, Obj]) -> Plan:
    """`claims`: those that it owns; `templates`: of its namespace, by name."""
    if is_deleted(pod) or pod_facts.is_terminal(pod):
        return NOTHING
    own = {
        annotations_of(claim).get(POD_CLAIM_NAME): claim
        for claim in claims
        if not is_deleted(claim)
    }
    known = {
        status.get("name"): status.get("resourceClaimName")
        for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    actions: list[Action] = []
    named: list[Obj] = []
    for entry in _entries(pod):
        name = entry.get("name") or ""
        template = entry.get("resourceClaimTemplateName")
        if not template or name in known:
            continue
        if name in own:
            named.append({"name": name, "resourceClaimName": name_of(own[name])})
        elif template in templates:
            actions.append(_claim_creation(pod, name, templates[template]))
        else:
            words = f'PodResourceClaim {name}: resource claim template "{template}" not found'
            actions.append(
                Record(reference_to(pod), "Warning", "FailedResourceClaimCreation", words)
            )
    if named:
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"resourceClaimStatuses": named}}
        actions.append(
            Patch(PODS, namespace_of(pod), name_of(pod), patch, "strategic", "status", (NotFound,))
        )
    return Plan(actions)


def _without_finalizer(claim: Obj) -> list[Action]:
    finalizers = meta_of(claim).get("finalizers") or []
    if FINALIZER not in finalizers:
        return []
    left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
    return [merge_patch(RESOURCE_CLAIMS, claim, {"metadata": {"finalizers": left or None}})]


def plan_claim(claim: Obj, users: Mapping[str, Obj], owner: Obj | None) -> Plan:
    """`users`: pods that exist, by uid; `owner`: the pod that it was made for."""
    status = claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    kept = [item for item in reserved if _is_used(item, users)]
    if kept:
        return _with_status(claim, {"reservedFor": kept}) if kept != reserved else NOTHING
    if status.get("allocation") is not None or reserved:
        unused: Obj = {"allocation": None, "reservedFor": None}
        actions = list(_with_status(claim, unused).actions)
    else:
        # Only when its devices are given up: until then nobody else may believe it gone.
        actions = _without_finalizer(claim)
    if owner is not None and _is_done(owner) and not is_deleted(claim):
        actions.append(deletion(RESOURCE_CLAIMS, claim))
    return Plan(actions)


def _with_status(claim: Obj, status: Obj) -> Plan:
    return Plan([merge_patch(RESOURCE_CLAIMS, claim, {"status": status}, "status")])


def _claim_creation(pod: Obj, name: str, template: Obj) -> Create:
    """Under a name of the form that upstream generates, but always the same one for this pod: what
    was created and is not seen yet is not created again."""
    given = (template.get("spec") or {}).get("metadata") or {}
    suffix = hashlib.sha256(f"{uid_of(pod)}/{name}".encode()).hexdigest()[:5]
    base = f"{name_of(pod)}-{name}-"
    meta: Obj = {
        "name": base[: 253 - len(suffix)] + suffix,
        "generateName": base,
        "namespace": namespace_of(pod),
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: name},
        "ownerReferences": [controller_reference(PODS, pod)],
    }
    if given.get("labels"):
        meta["labels"] = dict(given["labels"])
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": copy_of((template.get("spec") or {}).get("spec") or {}),
    }
    return Create(RESOURCE_CLAIMS, claim, settled=(AlreadyExists,))


def _entries(pod: Obj) -> Sequence[Obj]:
    entries: Sequence[Obj] = (pod.get("spec") or {}).get("resourceClaims") or ()
    return entries


def _is_used(consumer: Obj, pods: Mapping[str, Obj]) -> bool:
    if consumer.get("resource") != "pods" or consumer.get("apiGroup"):
        return True  # not ours to judge
    pod = pods.get(consumer.get("uid") or "")
    return pod is not None and not _is_done(pod)


def _is_done(pod: Obj) -> bool:
    """As upstream: also one that is deleted before it has a node."""
    placed = bool((pod.get("spec") or {}).get("nodeName"))
    return pod_facts.is_terminal(pod) or (is_deleted(pod) and not placed)


@looks_at(EXISTENCE | SPEC | NODE | DELETION | PHASE | STATUS)
def _pod_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[tuple[str, str]]:
    pod = new if new is not None else old
    if pod is None or not _entries(pod):
        return
    yield (_POD, key_of(pod))
    if new is None or _is_done(new):
        namespace = namespace_of(pod)
        for claim in caches(RESOURCE_CLAIMS).by(_OF_POD, key_of(pod)):
            yield (_CLAIM, key_of(claim))
        for entry in _entries(pod):
            if entry.get("resourceClaimName"):
                yield (_CLAIM, f"{namespace}/{entry['resourceClaimName']}")


def _claim_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[tuple[str, str]]:
    claim = new if new is not None else old
    if claim is None:
        return
    yield (_CLAIM, key_of(claim))
    for key in _owning_pod(claim):
        yield (_POD, str(key))


def _template_changed(
    caches: Caches, old: Obj | None, new: Obj | None
) -> Iterable[tuple[str, str]]:
    """One that comes late is what pods may wait for."""
    if new is not None and old is None:
        for pod in caches(PODS).by(_BY_TEMPLATE, key_of(new)):
            yield (_POD, key_of(pod))


def _owning_pod(claim: Obj) -> list[str]:
    owner = controller_of(claim)
    if owner is None or owner.get("kind") != "Pod":
        return []
    return [f"{namespace_of(claim)}/{owner.get('name')}"]


@looks_at(SPEC)
def _templates_of(pod: Obj) -> list[str]:
    names = (entry.get("resourceClaimTemplateName") for entry in _entries(pod))
    return [f"{namespace_of(pod)}/{name}" for name in names if name]


async def _plan_key(view: View, key: tuple[str, str]) -> Plan:
    kind, of = key
    return _planned_pod(view, of) if kind == _POD else _planned_claim(view, of)


def _planned_pod(view: View, key: str) -> Plan:
    pod = view.cache(PODS).get(key)
    if pod is None:
        return NOTHING
    owned = view.cache(RESOURCE_CLAIMS).by(_OF_POD, key)
    mine = [item for item in owned if (controller_of(item) or {}).get("uid") == uid_of(pod)]
    found = {
        template.partition("/")[2]: view.cache(RESOURCE_CLAIM_TEMPLATES).get(template)
        for template in _templates_of(pod)
    }
    return plan_pod(
        pod, mine, {name: match_ for name, match_ in found.items() if match_ is not None}
    )


def _planned_claim(view: View, key: str) -> Plan:
    claim = view.cache(RESOURCE_CLAIMS).get(key)
    if claim is None:
        return NOTHING
    pods = view.cache(PODS)
    users = {}
    for item in (claim.get("status") or {}).get("reservedFor") or ():
        pod = pods.get(f"{namespace_of(claim)}/{item.get('name')}")
        if pod is not None:
            users[uid_of(pod)] = pod
    owner = next((pods.get(item) for item in _owning_pod(claim)), None)
    made_for = (controller_of(claim) or {}).get("uid")
    return plan_claim(claim, users, owner if owner and uid_of(owner) == made_for else None)

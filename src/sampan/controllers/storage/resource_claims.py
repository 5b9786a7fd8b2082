"""Claims to devices: made from templates for pods, and given up when their pods are done.

Job: a ResourceClaim for every template that a pod names, and its name in the pod's status; who is
    done is taken off `reservedFor`; a claim without users loses its devices.
Invariant: a claim that is not the pod's own is never used for a template.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sampan.api.errors import Conflict, NotFound
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
    Outcome,
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
_OF_POD, _BY_TEMPLATE, _BY_CLAIM = "pod that owns it", "template", "claim"
LONGEST_PREFIX = 57  # of a name of 63 characters: a dash and five random ones follow
Named = Callable[[str], Obj | None]


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
            PODS: {_BY_TEMPLATE: _templates_of, _BY_CLAIM: _claims_of},
        },
        planned=_plan_key,
    )


def plan_pod(pod: Obj, claims: Sequence[Obj], templates: Mapping[str, Obj], named: Named) -> Plan:
    """`claims`: those that it owns; `templates`: of its namespace, by name; `named`: any claim of
    its namespace."""
    if is_deleted(pod) or pod_facts.is_terminal(pod):
        return NOTHING
    known = _claim_names(pod)
    own = {annotations_of(claim).get(POD_CLAIM_NAME): claim for claim in claims}
    found: dict[str, str] = {}  # names of claims that the pod's status does not have yet
    actions: list[Action] = []
    for entry in _entries(pod):
        name, template = entry.get("name") or "", entry.get("resourceClaimTemplateName")
        there = named(known[name]) if name in known else None
        if not template or (there is not None and _is_controlled_by(there, pod)):
            continue
        if name in own:
            found[name] = name_of(own[name])
        elif template in templates:
            actions.append(_claim_creation(pod, name, templates[template]))
        else:
            why = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
            actions.append(_failed(pod, name, f'resource claim template "{template}": {why}'))
            break
    return Plan(
        [*actions, *_reservations(pod, named)], lambda done: _named_claims(pod, found, done)
    )


def _named_claims(
    pod: Obj, found: Mapping[str, str], outcomes: Sequence[Outcome]
) -> Sequence[Action]:
    """The pod's status names its claims; what could not be made is told of."""
    events: list[Action] = []
    names = dict(found)
    for outcome in outcomes:
        if isinstance(outcome.action, Create):
            entry = annotations_of(outcome.action.obj)[POD_CLAIM_NAME]
            if outcome.error is not None:
                events.append(
                    _failed(pod, entry, f"create ResourceClaim : {outcome.error.message}")
                )
            elif outcome.result is not None:
                names[entry] = name_of(outcome.result)
    if not names:
        return events
    listed = [{"name": name, "resourceClaimName": claim} for name, claim in names.items()]
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"resourceClaimStatuses": listed}}
    settled = (NotFound,)
    status = Patch(PODS, namespace_of(pod), name_of(pod), patch, "strategic", "status", settled)
    return [*events, status]


def _failed(pod: Obj, entry: str, why: str) -> Record:
    message = f"PodResourceClaim {entry}: {why}"
    return Record(reference_to(pod), "Warning", "FailedResourceClaimCreation", message)


def _reservations(pod: Obj, named: Named) -> list[Action]:
    """Of claims that have devices, for a pod that came to its node without the scheduler."""
    if not pod_facts.node_name(pod):
        return []
    consumer = {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}
    made: list[Action] = []
    for name in _claim_names(pod).values():
        claim = named(name)
        status = (claim or {}).get("status") or {}
        reserved = status.get("reservedFor") or []
        known = any(item.get("uid") == uid_of(pod) for item in reserved)
        if claim is not None and status.get("allocation") is not None and not known:
            wanted = {"reservedFor": [*reserved, consumer]}
            made.append(merge_patch(RESOURCE_CLAIMS, claim, {"status": wanted}, "status"))
    return made


def plan_claim(claim: Obj, users: Mapping[str, Obj], owner: Obj | None) -> Plan:
    """`users`: pods that exist, by uid; `owner`: the pod that has the name of the one that it was
    made for."""
    status = claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    kept = [item for item in reserved if _is_used(item, users)]
    freed = not kept and _gives_devices_up(claim)
    changes: Obj = {} if len(kept) == len(reserved) else {"reservedFor": kept or None}
    if freed and status.get("allocation") is not None:
        changes["allocation"] = None
    actions: list[Action] = []
    if changes:
        actions.append(merge_patch(RESOURCE_CLAIMS, claim, {"status": changes}, "status"))
    if not kept and _outlives_its_pod(claim, owner):
        actions.append(deletion(RESOURCE_CLAIMS, claim))

    def then(outcomes: Sequence[Outcome]) -> Sequence[Action]:
        failed = any(outcome.error is not None for outcome in outcomes)
        return _without_finalizer(claim) if freed and not failed else ()

    return Plan(actions, then)


def _gives_devices_up(claim: Obj) -> bool:
    """On the way from used to unused, or when the claim has to go: what is allocated and nobody has
    reserved yet, somebody else has seen to."""
    ours = FINALIZER in (meta_of(claim).get("finalizers") or ())
    return ours and (bool((claim.get("status") or {}).get("reservedFor")) or is_deleted(claim))


def _outlives_its_pod(claim: Obj, owner: Obj | None) -> bool:
    if owner is None or is_deleted(claim):
        return False
    return uid_of(owner) != (controller_of(claim) or {}).get("uid") or _is_done(owner)


def _without_finalizer(claim: Obj) -> list[Action]:
    """Only when its devices are given up: until then nobody else may believe it gone."""
    meta = {"uid": uid_of(claim), "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    namespace, name, settled = namespace_of(claim), name_of(claim), (NotFound, Conflict)
    patch = {"metadata": meta}
    return [Patch(RESOURCE_CLAIMS, namespace, name, patch, "strategic", settled=settled)]


def _claim_creation(pod: Obj, name: str, template: Obj) -> Create:
    given = (template.get("spec") or {}).get("metadata") or {}
    meta: Obj = {
        "generateName": _generated_prefix(name_of(pod), name),
        "namespace": namespace_of(pod),
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: name},
        "ownerReferences": [_owner_reference(pod)],
    }
    if given.get("labels"):
        meta["labels"] = dict(given["labels"])
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": copy_of((template.get("spec") or {}).get("spec") or {}),
    }
    return Create(RESOURCE_CLAIMS, claim)


def _generated_prefix(pod: str, entry: str) -> str:
    """Both names in it, however long they are."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= LONGEST_PREFIX:
        return whole
    parts = (text[: len(text) * LONGEST_PREFIX // len(whole)] for text in (pod, entry))
    return "-".join(parts)


def _owner_reference(pod: Obj) -> Obj:
    """A deletion of the pod in the foreground does not wait for its claims."""
    reference = controller_reference(PODS, pod)
    del reference["blockOwnerDeletion"]
    return reference


def _is_controlled_by(claim: Obj, pod: Obj) -> bool:
    return (controller_of(claim) or {}).get("uid") == uid_of(pod)


@looks_at(SPEC | STATUS)
def _claims_of(pod: Obj) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in _claim_names(pod).values()]


def _claim_names(pod: Obj) -> dict[str, str]:
    """By entry of its spec: the claims that exist, as far as the pod knows."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {str(status.get("name")): status.get("resourceClaimName") for status in statuses}
    named = {str(item.get("name")): item.get("resourceClaimName") for item in _entries(pod)}
    return {entry: claim for entry, claim in {**made, **_set(named)}.items() if claim}


def _set(named: Mapping[str, str | None]) -> dict[str, str]:
    return {entry: claim for entry, claim in named.items() if claim}


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
        for claim in caches(RESOURCE_CLAIMS).by(_OF_POD, key_of(pod)):
            yield (_CLAIM, key_of(claim))
        for key in _claims_of(pod):
            yield (_CLAIM, key)


def _claim_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[tuple[str, str]]:
    claim = new if new is not None else old
    if claim is None:
        return
    yield (_CLAIM, key_of(claim))
    for key in _owning_pod(claim):
        yield (_POD, str(key))
    # One that was lost is made again, and one that was given devices may be reserved.
    for pod in caches(PODS).by(_BY_CLAIM, key_of(claim)):
        yield (_POD, key_of(pod))


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
    templates = {name: template for name, template in found.items() if template is not None}
    claims, namespace = view.cache(RESOURCE_CLAIMS), namespace_of(pod)
    return plan_pod(pod, mine, templates, lambda name: claims.get(f"{namespace}/{name}"))


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
    return plan_claim(claim, users, owner)

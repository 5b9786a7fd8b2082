"""Namespace lifecycle: a namespace that is being deleted takes all of its content with it.

Job: delete what a terminating namespace holds, say in its conditions what remains and why, and
    release the namespace when nothing does.
Invariant: pods go before anything else, so that what they use outlives them.
Invariant: a namespace is released only when the server itself said that nothing remains.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sampan.api.errors import ApiError, NotFound, ServiceUnavailable, UnknownPath
from sampan.api.objects import (
    Obj,
    copy_of,
    is_deleted,
    meta_of,
    name_of,
    namespace_of,
    time_text,
)
from sampan.api.resources import (
    API_SERVICES,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    NAMESPACES,
    PODS,
    Resource,
)
from sampan.api.rules.aspects import DELETION, EXISTENCE, looks_at
from sampan.api.rules.conditions import is_true
from sampan.api.served import served_resources
from sampan.client.contract import Client
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Delete,
    Outcome,
    Plan,
    Update,
    deletion,
    merge_patch,
)
from sampan.controllers.cluster.custom_kinds import custom_resource, custom_resources
from sampan.controllers.controller import Caches, Controller, View, Wake, own_key
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of

FINALIZER = "kubernetes"
RETRY_SECONDS = 15.0  # where a kind could not be listed

Content = Mapping[Resource, Sequence[Obj]]


def namespace_controller() -> Controller:
    wakes: dict[Resource, Wake] = {NAMESPACES: own_key, API_SERVICES: _server_changed}
    for resource in content_resources():
        # Events have neither finalizers nor grace: they are gone when their deletion returns.
        if resource != EVENTS:
            wakes[resource] = _leaving
    return Controller(
        name="namespace-controller",
        component="namespace-controller",
        aliases=("namespace",),
        wakes=wakes,
        planned=_plan_key,
        indices={CUSTOM_RESOURCE_DEFINITIONS: {}},
        brings={CUSTOM_RESOURCE_DEFINITIONS: _custom_content},
        optional={*wakes, CUSTOM_RESOURCE_DEFINITIONS} - {NAMESPACES},
        workers=10,
    )


def content_resources() -> list[Resource]:
    """Every kind that is served, that a namespace can hold and that can be deleted, each once."""
    found: dict[str, Resource] = {}
    for resource in served_resources():
        if resource.namespaced and {"list", "watch", "delete"} <= set(resource.verbs):
            found.setdefault(resource.storage_prefix, resource)
    return list(found.values())


def _custom_content(definition: Obj) -> Mapping[Resource, Wake]:
    resource = custom_resource(definition)
    return {resource: _leaving} if resource is not None and resource.namespaced else {}


def is_terminating(namespace: Obj | None) -> bool:
    return namespace is not None and is_deleted(namespace)


@dataclass(frozen=True, slots=True)
class Troubles:
    """What keeps the controller from knowing all that a namespace holds."""

    failures: Sequence[str] = ()  # why something was not listed
    stale: Sequence[str] = ()  # group versions whose server does not say what it serves

    def __bool__(self) -> bool:
        return bool(self.failures or self.stale)


NO_TROUBLES = Troubles()


def plan(namespace: Obj, content: Content, now: float, troubles: Troubles = NO_TROUBLES) -> Plan:
    """`content`: all objects in the namespace, as the server listed them after its deletion."""
    if not is_deleted(namespace) or not _finalizers(namespace):
        return NOTHING
    if not any(content.values()) and not troubles:
        # The conditions first: who is released may be gone a moment later.
        return Plan(_status_actions(namespace, (), troubles, now) or _release(namespace))
    wanted = {PODS: content[PODS]} if content.get(PODS) else content
    deletions = [
        deletion(resource, obj)
        for resource, objects in wanted.items()
        for obj in objects
        if not is_deleted(obj)
    ]
    waiting = [(resource, obj) for resource, objects in wanted.items() for obj in objects]

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        errors = [outcome.error.message for outcome in outcomes if outcome.error is not None]
        remaining = _remaining(waiting, outcomes)
        known = Troubles([*troubles.failures, *errors], troubles.stale)
        return _status_actions(namespace, remaining, known, now)

    # What is gone at once (events, pods that never ran) may leave no change to wake us.
    again = 0.0 if deletions else RETRY_SECONDS if troubles else None
    return Plan(deletions, then, again_seconds=again)


def conditions(
    before: Sequence[Obj],
    remaining: Sequence[tuple[Resource, Obj]],
    troubles: Troubles,
    now: float,
) -> list[Obj]:
    """The five conditions of a terminating namespace, as upstream words them."""
    stated = [
        _condition("NamespaceDeletionDiscoveryFailure", _discovery_message(troubles.stale)),
        _condition("NamespaceDeletionGroupVersionParsingFailure", ""),
        _condition("NamespaceDeletionContentFailure", _failure_message(troubles.failures)),
        _condition("NamespaceContentRemaining", _content_message(remaining)),
        _condition("NamespaceFinalizersRemaining", _finalizers_message(remaining)),
    ]
    known = {condition.get("type"): condition for condition in before}
    foreign = [item for item in before if item.get("type") not in {new["type"] for new in stated}]
    return [
        *foreign,
        *(
            _with_transition_time(condition, known.get(condition["type"]), now)
            for condition in stated
        ),
    ]


async def _plan_key(view: View, key: str) -> Plan:
    namespace = view.cache(NAMESPACES).get(key)
    if namespace is None or not is_deleted(namespace) or not _finalizers(namespace):
        return NOTHING
    custom = [resource for resource in custom_resources(view.cache) if resource.namespaced]
    elsewhere, stale = await _elsewhere(view)
    content, failures = await _content(view.client, key, [*custom, *elsewhere])
    return plan(namespace, content, view.now, Troubles(failures, stale))


async def _elsewhere(view: View) -> tuple[list[Resource], list[str]]:
    """What servers behind APIServices keep in namespaces; of which group versions nobody knows."""
    found: list[Resource] = []
    stale: list[str] = []
    for service in view.cache(API_SERVICES).all():
        if not _is_elsewhere(service):
            continue
        spec = service["spec"]
        group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
        try:
            if not is_true(service, "Available"):
                raise ServiceUnavailable("service unavailable")
            served = await view.client.resources(group, version)
        except ApiError:
            stale.append(f"{group}/{version}")
            continue
        found += [row for row in served if row.namespaced and {"list", "delete"} <= {*row.verbs}]
    return found, stale


async def _content(
    client: Client, namespace: str, custom: Sequence[Resource]
) -> tuple[Content, list[str]]:
    """With what went wrong. One kind that cannot be listed keeps the namespace, not the others."""
    failures: list[str] = []

    async def listed(resource: Resource) -> tuple[Resource, list[Obj]]:
        try:
            return resource, (await client.list(resource, namespace)).items
        except (NotFound, UnknownPath):
            return resource, []  # nobody serves the kind (any more)
        except ApiError as error:
            failures.append(error.message)
            return resource, []

    pods = await listed(PODS)
    if pods[1] or failures:
        return dict([pods]), failures
    others = [resource for resource in content_resources() if resource != PODS]
    found = await all_of(listed(resource) for resource in (*others, *custom))
    return dict([pods, *found]), failures


def _server_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """A server behind an APIService came, went, or answers again: it may keep a namespace."""
    if all(item is None or not _is_elsewhere(item) for item in (old, new)):
        return ()
    return [name_of(item) for item in caches(NAMESPACES).all() if is_deleted(item)]


def _is_elsewhere(service: Obj) -> bool:
    return (service.get("spec") or {}).get("service") is not None


@looks_at(EXISTENCE | DELETION)
def _leaving(caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Something in a terminating namespace went away, or was released by a finalizer's owner."""
    obj = new if new is not None else _old
    if obj is None or (new is not None and not is_deleted(new)):
        return ()
    namespace = namespace_of(obj)
    return (namespace,) if is_terminating(caches(NAMESPACES).get(namespace)) else ()


def _finalizers(namespace: Obj) -> list[str]:
    finalizers: list[str] = (namespace.get("spec") or {}).get("finalizers") or []
    return finalizers


def _is_held_by_others(namespace: Obj) -> bool:
    """It stays when its content is gone, until they let go."""
    others = {*_finalizers(namespace), *(meta_of(namespace).get("finalizers") or ())}
    return bool(others - {FINALIZER})


def _release(namespace: Obj) -> list[Action]:
    finalizers = _finalizers(namespace)
    if FINALIZER not in finalizers:
        return []
    released: Obj = copy_of(namespace)
    released["spec"]["finalizers"] = [each for each in finalizers if each != FINALIZER]
    return [Update(NAMESPACES, released, subresource="finalize")]


def _remaining(
    waiting: Sequence[tuple[Resource, Obj]], outcomes: Sequence[Outcome]
) -> list[tuple[Resource, Obj]]:
    """What the deletions did not remove at once: finalizers, grace, failures, not tried."""
    gone: set[tuple[str, str]] = set()
    for outcome in outcomes:
        action = outcome.action
        if isinstance(action, Delete) and outcome.error is None and not _stays(outcome.result):
            gone.add((action.resource.group_resource, action.name))
    return [
        (resource, obj)
        for resource, obj in waiting
        if (resource.group_resource, name_of(obj)) not in gone
    ]


def _stays(result: Obj | None) -> bool:
    if result is None or not is_deleted(result):
        return False
    meta = meta_of(result)
    return bool(meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"))


def _status_actions(
    namespace: Obj,
    remaining: Sequence[tuple[Resource, Obj]],
    troubles: Troubles,
    now: float,
) -> list[Action]:
    if not (remaining or troubles or _is_held_by_others(namespace)):
        return []  # it will be gone in a moment: nobody could read this
    before: list[Obj] = (namespace.get("status") or {}).get("conditions") or []
    stated = conditions(before, remaining, troubles, now)
    if stated == before:
        return []
    status = {"phase": "Terminating", "conditions": stated}
    return [merge_patch(NAMESPACES, namespace, {"status": status}, subresource="status")]


# Reason and message of each condition when all is well, and its reason when it is not.
_WELL = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
        "DiscoveryFailed",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
        "GroupVersionParsingFailed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
        "ContentDeletionFailed",
    ),
    "NamespaceContentRemaining": (
        "ContentRemoved",
        "All content successfully removed",
        "SomeResourcesRemain",
    ),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
        "SomeFinalizersRemain",
    ),
}


def _condition(kind: str, trouble: str) -> Obj:
    well_reason, well_message, trouble_reason = _WELL[kind]
    return {
        "type": kind,
        "status": "True" if trouble else "False",
        "reason": trouble_reason if trouble else well_reason,
        "message": trouble or well_message,
    }


def _with_transition_time(condition: Obj, before: Obj | None, now: float) -> Obj:
    """The time is that of the last change of status, as upstream's updater keeps it."""
    if before is not None and before.get("status") == condition["status"]:
        return {**before, **condition}
    return {**condition, "lastTransitionTime": time_text(now)}


def _discovery_message(stale: Sequence[str]) -> str:
    if not stale:
        return ""
    listed = ", ".join(f"{item}: stale GroupVersion discovery: {item}" for item in sorted(stale))
    why = f"unable to retrieve the complete list of server APIs: {listed}"
    return f"Discovery failed for some groups, {len(stale)} failing: {why}"


def _failure_message(errors: Sequence[str]) -> str:
    if not errors:
        return ""
    listed = ", ".join(sorted(set(errors)))
    return f"Failed to delete all resource types, {len(errors)} remaining: {listed}"


def _content_message(remaining: Sequence[tuple[Resource, Obj]]) -> str:
    counts = Counter(f"{resource.plural}.{resource.group}" for resource, _ in remaining)
    if not counts:
        return ""
    listed = ", ".join(
        f"{name} has {count} resource instances" for name, count in sorted(counts.items())
    )
    return f"Some resources are remaining: {listed}"


def _finalizers_message(remaining: Sequence[tuple[Resource, Obj]]) -> str:
    counts = Counter(
        finalizer for _, obj in remaining for finalizer in meta_of(obj).get("finalizers") or ()
    )
    if not counts:
        return ""
    listed = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(counts.items())
    )
    return f"Some content in the namespace has finalizers remaining: {listed}"

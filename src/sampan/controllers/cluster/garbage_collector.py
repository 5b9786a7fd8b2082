"""Garbage collection: dependents without an owner, foreground and orphaning deletion.

Job: decide for one object, given the state of its owners and its dependents: delete it, release it,
    cut its references to owners that are gone, or leave it.
Invariant: an object with a living owner is never deleted.
Invariant: an owner counts as gone only when its deletion was seen or the server said so; that
    nobody serves its kind now says nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from sampan.api.errors import NotFound, UnknownPath
from sampan.api.objects import Obj, is_deleted, meta_of, namespace_of, revision_of, uid_of
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, Resource
from sampan.api.rules.aspects import DELETION, EXISTENCE, OWNERS, looks_at
from sampan.api.served import served_resources
from sampan.client.contract import Propagation
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Delete,
    Outcome,
    Patch,
    Plan,
    Record,
    merge_patch,
)
from sampan.controllers.cluster.custom_kinds import KindOf, custom_resource, with_custom
from sampan.controllers.cluster.object_graph import (
    FOREGROUND,
    ORPHAN,
    Item,
    ObjectGraph,
    has_finalizer,
    named_by,
    owners_of,
    waits_for_dependents,
    waits_for_orphaning,
)
from sampan.controllers.controller import Caches, Controller, View, Wake
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

RETRY_SECONDS = 30.0  # for what is owned by a kind that nobody serves

AT_ONCE = 500  # dependents or owners that are looked at, or released, in one go
AGAIN_SECONDS = 0.1


class Owner(Enum):
    """What became of the object that an ownerReference names."""

    LIVES = "lives"
    WAITS = "waits"  # deleted in the foreground: it waits for us to go
    ABSENT = "absent"
    UNKNOWN = "unknown"  # its kind is not known or not served, or it cannot be an owner here


@dataclass(frozen=True, slots=True)
class Dependent:
    resource: Resource
    obj: Obj


@dataclass(frozen=True, slots=True)
class Situation:
    resource: Resource
    obj: Obj
    owners: Sequence[tuple[Obj, Owner]]  # each reference, and what it leads to
    dependents: Sequence[Dependent]
    # References to an owner that lives in another namespace than the object.
    misplaced: Sequence[Obj] = ()
    # The kind of an owner is not watched yet: that it goes nobody would tell.
    unwatched: bool = False


def plan(situation: Situation) -> Plan:
    obj = situation.obj
    if waits_for_orphaning(obj):
        return _orphaning(situation)
    if waits_for_dependents(obj):
        return _foreground(situation)
    if is_deleted(obj) or not situation.owners:
        return NOTHING
    reports = [_misplaced_event(obj, reference) for reference in situation.misplaced]
    states = {state for _, state in situation.owners}
    if Owner.UNKNOWN in states:
        # A definition may come, which wakes us; that a server begins to serve a kind nobody tells.
        return Plan(reports, again_seconds=None if reports else RETRY_SECONDS)
    if Owner.LIVES in states:
        again = RETRY_SECONDS if situation.unwatched else None
        if states == {Owner.LIVES}:
            return Plan(reports, again_seconds=again)
        return Plan([*reports, _without_gone_owners(situation)], again_seconds=again)
    if Owner.WAITS in states and situation.dependents:
        return Plan([*reports, *_foreground_deletion(situation)])
    return Plan([*reports, _deletion(situation, _policy(obj))])


def collected_resources() -> list[Resource]:
    """Every kind that can be watched and deleted, each once. Events own nothing and expire."""
    found: dict[str, Resource] = {}
    for resource in served_resources():
        if resource != EVENTS and {"list", "watch", "delete"} <= set(resource.verbs):
            found.setdefault(resource.storage_prefix, resource)
    found.pop(EVENTS.storage_prefix, None)
    return list(found.values())


def garbage_collector() -> Controller:
    resources = {resource.storage_prefix: resource for resource in collected_resources()}
    graph = ObjectGraph(with_custom(resources))
    puzzling: set[Item] = set()  # owned by a kind that nobody served when they were last looked at

    def wake(resource: Resource) -> Wake:
        @looks_at(EXISTENCE | OWNERS | DELETION)
        def changed(_caches: Caches, old: Obj | None, new: Obj | None) -> list[Item]:
            return graph.changed(resource, old, new)

        return changed

    def brought(definition: Obj) -> Mapping[Resource, Wake]:
        resource = custom_resource(definition)
        if resource is None:
            return {}
        resources[resource.storage_prefix] = resource
        return {resource: wake(resource)}

    def definition_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> list[Item]:
        gone = custom_resource(old)
        if gone is not None and custom_resource(new) != gone:
            resources.pop(gone.storage_prefix, None)
        return [*graph.changed(CUSTOM_RESOURCE_DEFINITIONS, old, new), *puzzling]

    async def planned(view: View, item: Item) -> Plan:
        situation = await _situation(view, graph, resources, item)
        owners = situation.owners if situation is not None else ()
        unknown = [owner for owner, state in owners if state is Owner.UNKNOWN]
        if not unknown:
            puzzling.discard(item)
        elif item not in puzzling:
            puzzling.add(item)
            _tell_of_unknown(item, unknown)
        return plan(situation) if situation is not None else NOTHING

    return Controller(
        name="garbage-collector-controller",
        component="garbage-collector-controller",
        aliases=("garbagecollector",),
        wakes={
            **{resource: wake(resource) for resource in resources.values()},
            CUSTOM_RESOURCE_DEFINITIONS: definition_changed,
        },
        brings={CUSTOM_RESOURCE_DEFINITIONS: brought},
        planned=planned,
        optional={*resources.values(), CUSTOM_RESOURCE_DEFINITIONS},
        workers=20,
    )


async def _situation(
    view: View, graph: ObjectGraph, resources: dict[str, Resource], item: Item
) -> Situation | None:
    resource = resources.get(item.resource)
    obj = view.cache(resource).get(item.key) if resource is not None else None
    if resource is None or obj is None or uid_of(obj) != item.uid:
        return None
    dependents: list[Dependent] = []
    for count, entry in enumerate(graph.dependents_of(item.uid), 1):
        if count % AT_ONCE == 0:
            await asyncio.sleep(0)  # one may own thousands; others have the loop in between
        kind = resources.get(entry.resource)
        dependent = view.cache(kind).get(entry.key) if kind is not None else None
        if kind is not None and dependent is not None and uid_of(dependent) == entry.uid:
            dependents.append(Dependent(kind, dependent))
    owners: list[tuple[Obj, Owner]] = []
    for count, reference in enumerate(owners_of(obj), 1):
        if count % AT_ONCE == 0:
            await asyncio.sleep(0)
        owners.append((reference, await _owner(view, graph, resources, reference, obj)))
    kind_of = with_custom(resources)
    misplaced = [entry for entry in owners_of(obj) if _is_misplaced(graph, kind_of, entry, obj)]
    unwatched = any(_is_unwatched(view, resources, kind_of, entry) for entry in owners_of(obj))
    return Situation(resource, obj, owners, dependents, misplaced, unwatched)


def _is_unwatched(
    view: View, resources: dict[str, Resource], kind_of: KindOf, reference: Obj
) -> bool:
    named = kind_of(reference.get("apiVersion", ""), reference.get("kind", ""))
    resource = resources.get(named.storage_prefix) if named is not None else None
    return resource is not None and not view.is_synced(resource)


async def _owner(
    view: View,
    graph: ObjectGraph,
    resources: dict[str, Resource],
    reference: Obj,
    obj: Obj,
) -> Owner:
    named = named_by(reference, namespace_of(obj), with_custom(resources))
    resource = resources.get(named.resource) if named is not None else None
    if named is None or resource is None:
        return Owner.UNKNOWN
    if graph.find(named.uid) == named:
        owner = view.cache(resource).get(named.key)
        if owner is not None and uid_of(owner) == named.uid:
            return Owner.WAITS if waits_for_dependents(owner) else Owner.LIVES
    if graph.is_known_absent(named):
        return Owner.ABSENT
    # The cache has not seen it: it may be too new, or gone. The server knows.
    namespace, _, name = named.key.rpartition("/")
    try:
        owner = await view.client.get(resource, namespace, name)
    except UnknownPath:
        return Owner.UNKNOWN
    except NotFound:
        graph.found_absent(named)
        return Owner.ABSENT
    if uid_of(owner) != named.uid:
        graph.found_absent(named)
        return Owner.ABSENT
    return Owner.WAITS if waits_for_dependents(owner) else Owner.LIVES


def _tell_of_unknown(item: Item, unknown: Sequence[Obj]) -> None:
    kinds = sorted({f"{owner.get('apiVersion')} {owner.get('kind')}" for owner in unknown})
    log.warning(
        "ownerReferences name a kind that is not served", object=item.key, kinds=", ".join(kinds)
    )


def _is_misplaced(graph: ObjectGraph, kind_of: KindOf, reference: Obj, obj: Obj) -> bool:
    resource = kind_of(reference.get("apiVersion", ""), reference.get("kind", ""))
    if resource is None or not resource.namespaced:
        return False
    if not namespace_of(obj):
        return True
    found = graph.find(reference.get("uid", ""))
    return found is not None and found.key.rpartition("/")[0] != namespace_of(obj)


def _misplaced_event(obj: Obj, reference: Obj) -> Record:
    namespace = namespace_of(obj)
    named = (
        f"[{reference.get('apiVersion', '')}/{reference.get('kind', '')}, "
        f"namespace: {namespace}, name: {reference.get('name', '')}, "
        f"uid: {reference.get('uid', '')}]"
    )
    message = f'ownerRef {named} does not exist in namespace "{namespace}"'
    return Record(reference_to(obj), "Warning", "OwnerRefInvalidNamespace", message)


def _orphaning(situation: Situation) -> Plan:
    """Dependents are released first; only then may the owner go."""
    owner = situation.obj
    bound = [each for each in situation.dependents if _names(each.obj, owner)]
    releases = [
        merge_patch(
            dependent.resource,
            dependent.obj,
            {"metadata": {"ownerReferences": _others(dependent.obj, owner)}},
        )
        for dependent in bound[:AT_ONCE]
    ]
    if len(bound) > AT_ONCE:
        return Plan([_settled_by_absence(item) for item in releases], again_seconds=AGAIN_SECONDS)
    release = _without_finalizer(situation, ORPHAN)

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        return [] if any(outcome.error is not None for outcome in outcomes) else [release]

    settled = [_settled_by_absence(item) for item in releases]
    return Plan(settled, then) if settled else Plan([release])


def _foreground(situation: Situation) -> Plan:
    owner = situation.obj
    for dependent in situation.dependents:
        for reference in owners_of(dependent.obj):
            if reference.get("uid") == uid_of(owner) and reference.get("blockOwnerDeletion"):
                return NOTHING  # its end will wake us
    return Plan([_without_finalizer(situation, FOREGROUND)])


def _foreground_deletion(situation: Situation) -> list[Action]:
    """Our own dependents go before us. Where one of them already waits for its own, a circle would
    wait for ever: we stop blocking our owner."""
    obj = situation.obj
    actions: list[Action] = []
    if any(waits_for_dependents(dependent.obj) for dependent in situation.dependents):
        unblocked = [{**item, "blockOwnerDeletion": False} for item in owners_of(obj)]
        if unblocked != owners_of(obj):
            patch = {"metadata": {"ownerReferences": unblocked}}
            actions.append(merge_patch(situation.resource, obj, patch))
            # The patch changes the revision that the deletion would ask for.
            return [*actions, _deletion(situation, "Foreground", revision=0)]
    return [_deletion(situation, "Foreground")]


def _policy(obj: Obj) -> Propagation:
    """What was asked for earlier stays; otherwise dependents follow later."""
    if has_finalizer(obj, ORPHAN):
        return "Orphan"
    return "Foreground" if has_finalizer(obj, FOREGROUND) else "Background"


def _deletion(
    situation: Situation, propagation: Propagation, revision: int | None = None
) -> Delete:
    obj = situation.obj
    meta = meta_of(obj)
    return Delete(
        situation.resource,
        namespace_of(obj),
        str(meta.get("name")),
        uid_of(obj),
        # If it changed meanwhile, it may have found a new owner: look again.
        revision=revision_of(obj) if revision is None else revision,
        propagation=propagation,
    )


def _without_gone_owners(situation: Situation) -> Action:
    kept = [owner for owner, state in situation.owners if state is Owner.LIVES]
    patch = {"metadata": {"ownerReferences": kept}}
    return merge_patch(situation.resource, situation.obj, patch)


def _without_finalizer(situation: Situation, finalizer: str) -> Patch:
    finalizers = meta_of(situation.obj).get("finalizers") or []
    kept = [item for item in finalizers if item != finalizer]
    patch = {"metadata": {"finalizers": kept}}
    return _settled_by_absence(merge_patch(situation.resource, situation.obj, patch))


def _names(obj: Obj, owner: Obj) -> bool:
    uid = uid_of(owner)
    return any(reference.get("uid") == uid for reference in owners_of(obj))


def _others(obj: Obj, owner: Obj) -> list[Obj]:
    return [item for item in owners_of(obj) if item.get("uid") != uid_of(owner)]


def _settled_by_absence(patch: Patch) -> Patch:
    return replace(patch, settled=(NotFound,))

"""Storage version migration: every object of a resource is written once, in the version that is
stored now.

Job: one migration of a resource at a time: it runs, remembers a revision, has the objects that are
    not newer written, succeeds or fails; the definition of a custom resource is told.
Invariant: an object that somebody else wrote meanwhile is left alone; it is migrated already.
Invariant: a definition forgets old stored versions only if it is what it was when it all began.
"""

from collections.abc import Callable, Iterable, Sequence

from sampan.api.errors import (
    ApiError,
    Conflict,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from sampan.api.objects import (
    Obj,
    meta_of,
    name_of,
    namespace_of,
    revision_of,
    seconds_of,
    spec_of,
)
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from sampan.api.rules.conditions import condition_of, is_true, with_condition
from sampan.api.served import served_resources
from sampan.client.contract import Client, Page
from sampan.controllers.actions import (
    NOTHING,
    Outcome,
    Patch,
    Plan,
    merge_patch,
    status_patch,
)
from sampan.controllers.cluster.custom_kinds import custom_resource
from sampan.controllers.controller import Caches, Controller, View
from sampan.core.fast_dataclass import dataclass

Key = tuple[str, str]  # group and plural of what is migrated
NAME = "storage-version-migrator-controller"
UNKNOWN_SECONDS = 60.0  # that a resource may be unknown: its definition may be on its way
AGAIN_SECONDS = 1.0
PAGE = 500
_VERBS = ("update", "patch", "list")
_RETRIABLE = (InternalError, ServiceUnavailable, Timeout, TooManyRequests)
_RUNNING = "The migration is running"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a migration must know of an object."""

    namespace: str
    name: str
    revision: int


def storage_version_migrator_controller(migrations: Resource) -> Controller:
    async def planned(view: View, key: Key) -> Plan:
        of_resource = [
            item for item in view.cache(migrations).all() if key_of_migration(item) == key
        ]
        return await _plan(view, migrations, of_resource)

    return Controller(
        name=NAME,
        component=NAME,
        aliases=("svm",),
        wakes={migrations: _resource_of},
        planned=planned,
    )


def served_migrations() -> Resource | None:
    """In the best version that is served; None: there are none."""
    rows = (row for row in served_resources() if row.plural == "storageversionmigrations")
    return next(rows, None)


def key_of_migration(migration: Obj) -> Key:
    resource = spec_of(migration).get("resource") or {}
    return resource.get("group") or "", resource.get("resource") or ""


def _resource_of(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Key]:
    return [key_of_migration(each) for each in (new if new is not None else old,) if each]


def _created(migration: Obj) -> float:
    return seconds_of(meta_of(migration).get("creationTimestamp") or "")


def is_ended(migration: Obj) -> bool:
    return is_true(migration, "Succeeded") or is_true(migration, "Failed")


def chosen(migrations: Sequence[Obj]) -> tuple[list[Obj], Obj | None, Obj | None]:
    """Those to be put away, the one that runs, and the oldest that may begin where none runs."""
    running = [each for each in migrations if is_true(each, "Running")]
    active = [each for each in running if not is_ended(each)]
    waiting = [each for each in migrations if each not in running and not is_ended(each)]
    first = min(waiting, key=lambda each: (_created(each), name_of(each)), default=None)
    ended = [each for each in running if is_ended(each)]
    return ended, (active[0] if active else None), (None if active else first)


async def _plan(view: View, kind: Resource, migrations: Sequence[Obj]) -> Plan:
    ended, active, first = chosen(migrations)
    if ended:
        definition = await _definition(view.client, key_of_migration(ended[0]))
        return Plan(list(put_away(kind, ended[0], definition, view.now)))
    if active is not None:
        return await _progress(view, kind, active)
    if first is None:
        return NOTHING
    definition = await _definition(view.client, key_of_migration(first))
    return Plan(list(begin(kind, first, definition, view.now)))


def begin(kind: Resource, migration: Obj, definition: Obj | None, now: float) -> Iterable[Patch]:
    if definition is not None:
        told = _said("True", "MigrationRunning", f"Migration {name_of(migration)} is running")
        yield _migrating(definition, told, now)
    yield from _written(kind, migration, now, _running(_RUNNING))


def put_away(kind: Resource, migration: Obj, definition: Obj | None, now: float) -> Iterable[Patch]:
    if definition is not None:
        yield finished(definition, is_true(migration, "Succeeded"), now)
    completed = _said("False", "MigrationCompleted", "Migration completed")
    yield from _written(kind, migration, now, {"type": "Running", **completed})


def finished(definition: Obj, succeeded: bool, now: float) -> Patch:
    """What a definition says then; only the storage version is still stored, if nobody changed the
    definition meanwhile."""
    generation = meta_of(definition).get("generation")
    migrating = condition_of(definition, "StorageMigrating") or {}
    is_same = migrating.get("observedGeneration") == generation
    if not succeeded:
        told = _said("False", "MigrationFailed", "The migration has failed")
    elif is_same:
        why = "The migration has succeeded and the stored versions have been updated"
        told = _said("False", "MigrationSucceeded", why)
    else:
        why = (
            "The migration has succeeded but the stored versions have not been updated due to a "
            "generation mismatch"
        )
        told = _said("False", "MigrationSucceeded", why)
    stored = [item["name"] for item in spec_of(definition)["versions"] if item.get("storage")]
    return _migrating(definition, told, now, {"storedVersions": stored} if is_same else {})


async def _progress(view: View, kind: Resource, migration: Obj) -> Plan:
    resource = await _resource(view.client, key_of_migration(migration))
    has_revision = bool((migration.get("status") or {}).get("resourceVersion"))
    if resource is None:
        if view.now < _created(migration) + UNKNOWN_SECONDS:
            return Plan(again_seconds=AGAIN_SECONDS)
        why = "migration encountered unhandled error: unable to obtain GVR from discovery"
        return _failed(kind, migration, why if has_revision else _UNKNOWN, view.now)
    if has_revision:
        revision = int(migration["status"]["resourceVersion"])
        stored = await _stored(view.client, resource)
        return written_anew(kind, migration, resource, stored, revision, view.now)
    if not set(_VERBS) <= set(resource.verbs):
        of = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        why = f'resource "{of}" does not support discovery operations: [{" ".join(_VERBS)}]'
        return _failed(kind, migration, why, view.now)
    revision = (await view.client.list(resource, page=Page(limit=1))).revision
    status = {**(migration.get("status") or {}), "resourceVersion": str(revision)}
    patch = status_patch(kind, migration, status)
    return Plan([patch] if patch is not None else [])


_UNKNOWN = "resource does not exist in discovery"


def written_anew(
    kind: Resource,
    migration: Obj,
    resource: Resource,
    stored: Sequence[Stored],
    revision: int,
    now: float,
) -> Plan:
    """Every object that is not newer than the migration, and what is said of it afterwards."""
    old = [each for each in stored if each.revision <= revision]
    patches = [_touch(resource, each) for each in old]
    return Plan(patches, then=_result(kind, migration, len(old), len(stored), now))


def _result(
    kind: Resource, migration: Obj, old: int, every: int, now: float
) -> Callable[[Sequence[Outcome]], Sequence[Patch]]:
    def said(outcomes: Sequence[Outcome]) -> Sequence[Patch]:
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        left = old - len(outcomes) + len(errors)
        running = _running(running_message(left, every, None))
        if not errors:
            succeeded = _said("True", "StorageVersionMigrationSucceeded", "Migration completed")
            done = {"type": "Succeeded", **succeeded}
            return list(_written(kind, migration, now, running, done))
        if isinstance(errors[0], _RETRIABLE):
            transient = _running(running_message(left, every, errors[0]))
            return list(_written(kind, migration, now, transient))
        why = (
            f"{left}/{every} not yet migrated. migration encountered unhandled error: "
            f"{errors[0].message}"
        )
        return list(_written(kind, migration, now, running, _failure(why)))

    return said


def running_message(left: int, every: int, transient: ApiError | None) -> str:
    said = _RUNNING
    if every:
        said += (
            f", {left}/{every} objects not yet migrated"
            if left
            else f", {every} objects verified migrated"
        )
    return said if transient is None else f"{said}; transient error: {transient.message}"


def _touch(resource: Resource, each: Stored) -> Patch:
    """Changes nothing but what is stored in another form; whoever was faster has done it."""
    patch = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"resourceVersion": str(each.revision)},
    }
    settled = (Conflict, NotFound)
    return Patch(resource, each.namespace, each.name, patch, settled=settled)


def _failed(kind: Resource, migration: Obj, why: str, now: float) -> Plan:
    return Plan(list(_written(kind, migration, now, _failure(why))))


def _failure(why: str) -> Obj:
    return {"type": "Failed", **_said("True", "StorageVersionMigrationFailed", why)}


def _running(message: str) -> Obj:
    return {"type": "Running", **_said("True", "MigrationRunning", message)}


def _said(status: str, reason: str, message: str) -> Obj:
    return {"status": status, "reason": reason, "message": message}


def _written(kind: Resource, migration: Obj, now: float, *conditions: Obj) -> Iterable[Patch]:
    status = migration.get("status") or {}
    wanted = status.get("conditions") or []
    for condition in conditions:
        wanted = with_condition(wanted, condition, now)
    patch = status_patch(kind, migration, {**status, "conditions": wanted})
    return () if patch is None else (patch,)


def _migrating(definition: Obj, told: Obj, now: float, more: Obj | None = None) -> Patch:
    generation = {"observedGeneration": meta_of(definition).get("generation")}
    condition = {"type": "StorageMigrating", **told, **generation}
    had = (definition.get("status") or {}).get("conditions") or []
    status = {"conditions": with_condition(had, condition, now), **(more or {})}
    return merge_patch(CUSTOM_RESOURCE_DEFINITIONS, definition, {"status": status}, "status")


async def _definition(client: Client, key: Key) -> Obj | None:
    group, plural = key
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, "", f"{plural}.{group}")
    except NotFound:
        return None


async def _resource(client: Client, key: Key) -> Resource | None:
    """What is served by this server itself."""
    for row in served_resources():
        if (row.group, row.plural) == key:
            return row
    return custom_resource(await _definition(client, key))


async def _stored(client: Client, resource: Resource) -> list[Stored]:
    found: list[Stored] = []
    page = Page(limit=PAGE)
    while True:
        listed = await client.list(resource, page=page)
        found += (Stored(namespace_of(it), name_of(it), revision_of(it)) for it in listed.items)
        if not listed.continue_token:
            return found
        page = Page(limit=PAGE, continue_token=listed.continue_token)

"""CRD finalizer: the objects of a CustomResourceDefinition that is deleted go, then it goes.

Job: for every terminating definition: ask for the deletion of its objects, wait for the last of
    them, take the finalizer off; say in its Terminating condition how far that is.
Invariant: a definition goes only after the last of its objects.
Invariant: one that cannot go holds up no other: several workers, and each name waits for itself.
Owner: Definitions; the queue is this module's alone.
"""

from sampan.api.calls import Call, Item
from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, is_deleted, meta_of, name_of
from sampan.api.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from sampan.api.resources import Resource
from sampan.api.rules.conditions import condition_of, is_true
from sampan.apiserver.authn.user import MASTERS, User, with_authenticated_group
from sampan.apiserver.extension.accepted_names import told
from sampan.apiserver.registry.custom_resource_definitions import CLEANUP
from sampan.apiserver.registry.generic import PLAIN, Stale
from sampan.apiserver.write.delete import delete
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify
from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import replace
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)

WORKERS = 5  # as upstream
RETRY = Backoff(first_seconds=0.005, cap_seconds=1000.0)  # as client-go's queues
CHECK_SECONDS = 1.0
PATIENCE_SECONDS = 60.0  # until it is said that objects do not go
Condition = tuple[str, str, str, str]
_IN_PROGRESS: Condition = (
    "Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress",
)  # fmt: skip
_SERVER = with_authenticated_group(User("system:apiserver", (MASTERS,)))
_AGENT = "kube-apiserver"


class CrdFinalizer:
    def __init__(self, scope: RequestScope, tasks: Tasks) -> None:
        self._scope, self._tasks = scope, tasks
        self._registry, self._clock = scope.registry, scope.clock
        self._queue: WorkQueue[str] = WorkQueue(RETRY)
        self._since: dict[str, float] = {}  # since when the objects of a definition are to go

    def start(self) -> None:
        for number in range(WORKERS):
            self._tasks.supervise(f"finalize {number}", self._work)

    def close(self) -> None:
        self._queue.close()

    def enqueue(self, name: str) -> None:
        self._queue.add(name)

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                await self._sync(name)
            except (ApiError, Stale) as error:
                seconds = self._queue.retry(name)
                log.warning(
                    "custom resource definition not finalized", name=name, error=error,
                    retry_seconds=seconds,
                )  # fmt: skip
            finally:
                self._queue.done(name)

    async def _sync(self, name: str) -> None:
        item = self._terminating(name)
        if item is not None and is_true(item.obj, "Established"):
            if _reason(item.obj) != _IN_PROGRESS[2]:
                await self._tell(item.obj, _IN_PROGRESS)
            if not await self._is_empty(item.obj):
                self._queue.add_after(name, CHECK_SECONDS)
                return
            item = self._terminating(name)  # with what was written meanwhile
        if item is not None:
            await self._let_go(item)
        self._forget(name)

    def _terminating(self, name: str) -> Item | None:
        item = self._registry.kind(DEFINITIONS).items.get(name)
        return item if item is not None and _finalizers(item.obj) else None

    def _forget(self, name: str) -> None:
        self._queue.forget(name)
        self._since.pop(name, None)

    async def _is_empty(self, definition: Obj) -> bool:
        """Asks for the deletion of every object. Raises ApiError, and says so in the status."""
        name = name_of(definition)
        rows = self._registry.kinds.of_definition(name)
        if not rows:
            return True
        resource = as_stored(rows[0])
        try:
            await self._delete_all(resource)
        except ApiError as error:
            why = f"could not issue all deletes: {error}"
            await self._tell(definition, ("Terminating", "True", "InstanceDeletionFailed", why))
            raise
        if not self._registry.kind(resource).items:
            return True
        now = self._clock.monotonic()
        if now - self._since.setdefault(name, now) < PATIENCE_SECONDS:
            return False
        self._since[name] = now
        why = "could not confirm zero CustomResources remaining: context deadline exceeded"
        await self._tell(definition, ("Terminating", "True", "InstanceDeletionCheck", why))
        return False

    async def _delete_all(self, resource: Resource) -> None:
        """Every one is asked to go; the first failure is raised when all were. Raises ApiError."""
        failure: ApiError | None = None
        items = self._registry.kind(resource).items
        for key in [key for key, item in items.items() if not is_deleted(item.obj)]:
            namespace, _, name = key.rpartition("/")
            try:
                await delete(self._scope, _SERVER, Call("delete", resource, namespace, name))
            except NotFound:
                continue
            except ApiError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    async def _tell(self, definition: Obj, condition: Condition) -> None:
        """Over whatever the definition is by then: only its status is ours."""
        status = told(definition, condition, self._clock.now())["status"]
        await write_status(self._scope, name_of(definition), status)

    async def _let_go(self, item: Item) -> None:
        meta = meta_of(item.obj)
        left = [one for one in _finalizers(item.obj) if one != CLEANUP]
        done = {**item.obj, "metadata": {**meta, "finalizers": left}}
        if left:
            await self._registry.replace(DEFINITIONS, item, done, PLAIN)
        else:
            await self._registry.remove(DEFINITIONS, item, PLAIN)


async def write_status(scope: RequestScope, name: str, status: Obj) -> None:
    """Over whatever the definition is by then: only its status is ours."""
    call = Call("update", DEFINITIONS, "", name, "status", agent=_AGENT)

    def change(old: Obj) -> Obj:
        return {**old, "metadata": dict(old["metadata"]), "status": status}

    await modify(scope, _SERVER, call, Modification(change))


def as_stored(resource: Resource) -> Resource:
    """The kind in the version that it is stored in, served or not: to delete an object nobody has
    to convert it, whose webhook may be gone already."""
    custom = custom_of(resource)
    assert custom is not None, resource
    storage = custom.family.storage
    return replace(resource, version=storage.version, custom=storage)


def says_the_same(one: Obj, two: Obj) -> bool:
    """But for how far its end is, which is written here: nobody begins anew because of that."""
    return _without_progress(one) == _without_progress(two)


def _without_progress(definition: Obj) -> Obj:
    status = definition.get("status") or {}
    rest = [item for item in status.get("conditions") or () if item["type"] != "Terminating"]
    meta = meta_of(definition)
    shown = {key: meta[key] for key in meta if key not in ("resourceVersion", "managedFields")}
    return {**definition, "metadata": shown, "status": {**status, "conditions": rest}}


def _finalizers(definition: Obj) -> list[str]:
    """None where it is not to go, or ours is not among them."""
    found = list(meta_of(definition).get("finalizers") or ())
    return found if CLEANUP in found and is_deleted(definition) else []


def _reason(definition: Obj) -> str:
    condition = condition_of(definition, "Terminating")
    return "" if condition is None else str(condition["reason"])

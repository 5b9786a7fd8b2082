"""One reconcile loop of a sidecar: keys in, one at a time each, again where it failed.

Job: hand changed objects to a function; what the API or the driver refuses is tried again, later
    and later.
Owner: Sidecars.
"""

from collections.abc import Awaitable, Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, key_of
from sampan.client.informer import Informer
from sampan.core.backoff import Backoff
from sampan.core.flag import Flag
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)

WORKERS = 10  # at once: the driver sets the pace
RETRY = Backoff(first_seconds=0.5, cap_seconds=60.0)

Sync = Callable[[str], Awaitable[None]]


class Work:
    def __init__(self, name: str, sync: Sync, tasks: Tasks, ready: Flag) -> None:
        """`sync` is given a key, once `ready` is set; it raises ApiError or GrpcFailure for what
        is to be tried again."""
        self._name, self._sync, self._ready = name, sync, ready
        self._queue: WorkQueue[str] = WorkQueue(RETRY)
        for number in range(WORKERS):
            tasks.supervise(f"{name} {number}", self._run)

    def follow(self, informer: Informer, keys: Callable[[Obj], str] = key_of) -> None:
        """`keys`: of what a change of that kind concerns; empty: nothing."""
        informer.on_change(lambda old, new: self._changed(keys, new or old))

    def _changed(self, keys: Callable[[Obj], str], obj: Obj | None) -> None:
        if obj is not None and (key := keys(obj)):
            self._queue.add(key)

    def add(self, key: str) -> None:
        self._queue.add(key)

    async def _run(self) -> None:
        await self._ready.wait()
        while True:
            key = await self._queue.get()
            try:
                await self._sync(key)
                self._queue.forget(key)
            except (ApiError, GrpcFailure) as error:
                log.info("sync failed, trying again", work=self._name, key=key, error=error)
                self._queue.retry(key)
            finally:
                self._queue.done(key)

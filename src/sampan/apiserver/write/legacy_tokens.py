"""Legacy token tracking: the ConfigMap since when, and the last-used labels.

Job: keep the ConfigMap that says since when; label the secret of a token that is used with the day.
Invariant: a secret is written at most once a day, however often its token is shown.
Owner: of that ConfigMap and that label; one task.
"""

from datetime import UTC, date, datetime

from sampan.api.calls import Call, Item
from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, copy_of, labels_of, meta_of, name_of, namespace_of
from sampan.api.resources import CONFIG_MAPS, SECRETS
from sampan.apiserver.authn.user import MASTERS, User, with_authenticated_group
from sampan.apiserver.registry.generic import Stale
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.write.ensure import ensure, overwrite
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify
from sampan.core.backoff import Backoff
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)

LAST_USED = "kubernetes.io/legacy-token-last-used"
NAME, NAMESPACE = "kube-apiserver-legacy-service-account-token-tracking", "kube-system"
AGAIN_SECONDS = 1800.0  # as upstream: who deletes it may run a server that does not want it
_TRACKING = ("", "")  # in the queue: the ConfigMap
_SERVER = with_authenticated_group(User("system:apiserver", (MASTERS,)))


class LegacyTokens:
    def __init__(self, scope: RequestScope) -> None:
        self._scope = scope
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(Backoff(1.0, 60.0))
        self._tasks = Tasks("legacy-tokens")
        scope.authentication.when_legacy_used(self._used)
        follow(scope.registry.kind(CONFIG_MAPS), self._changed, lambda: None)

    async def start(self) -> None:
        await self._sync_tracking()
        self._tasks.supervise("sync", self._work)

    async def stop(self) -> None:
        self._queue.close()
        await self._tasks.stop()

    def _used(self, namespace: str, name: str) -> None:
        secret = self._scope.registry.find(SECRETS, namespace, name)
        if secret is not None and labels_of(secret).get(LAST_USED) != self._today():
            self._queue.add((namespace, name))

    def _changed(self, before: Item | None, now: Item | None) -> None:
        known = now or before
        assert known is not None
        if (namespace_of(known.obj), name_of(known.obj)) == (NAMESPACE, NAME):
            self._queue.add_after(_TRACKING, AGAIN_SECONDS if now is None else 0.0)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await (self._sync_tracking() if key == _TRACKING else self._label(*key))
                self._queue.forget(key)
            except NotFound:
                self._queue.forget(key)  # the secret went
            except (ApiError, Stale) as error:
                log.warning("legacy token not noted", key="/".join(key), error=error)
                self._queue.retry(key)
            finally:
                self._queue.done(key)

    async def _sync_tracking(self) -> None:
        found = self._scope.registry.find(CONFIG_MAPS, NAMESPACE, NAME)
        if found is None:
            await ensure(self._scope, CONFIG_MAPS, _tracking(self._today()))
        elif not _is_day((found.get("data") or {}).get("since")):
            data = {**(found.get("data") or {}), "since": self._today()}
            await overwrite(self._scope, CONFIG_MAPS, {**found, "data": data})

    async def _label(self, namespace: str, name: str) -> None:
        today = self._today()

        def change(old: Obj) -> Obj:
            new: Obj = copy_of(old)
            meta_of(new)["labels"] = {**labels_of(old), LAST_USED: today}
            return new

        call = Call("update", SECRETS, namespace, name)
        await modify(self._scope, _SERVER, call, Modification(change))

    def _today(self) -> str:
        return datetime.fromtimestamp(self._scope.clock.now(), UTC).strftime("%Y-%m-%d")


def _tracking(today: str) -> Obj:
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"since": today}}


def _is_day(text: str | None) -> bool:
    try:
        date.fromisoformat(text or "")
    except ValueError:
        return False
    return True

"""ConfigMaps and Secrets that pods refer to, watched while they do.

Job: one watch for each object that a pod refers to, shared by all pods that do; tell those pods
    when it changes. Reading costs nothing then: no request per pod and per sync.
Invariant: an object is watched only while a pod refers to it, and a little longer: the next pod
    often wants the same.
Invariant: an immutable object is read and not watched.
Owner: Kubelet, or whoever runs many nodes in one process: they share one.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import field

from sampan.api.objects import Obj, namespace_of, uid_of
from sampan.api.resources import CONFIG_MAPS, SECRETS
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import Tasks, all_of
from sampan.kubelet.container_spec.generate import references
from sampan.kubelet.contracts.volumes_hook import Objects, VolumeFailure
from sampan.kubelet.volumes.references import CONFIG_MAP, SECRET, volume_references

# As upstream's watch-based manager: who asks waits that long for the first answer.
SYNC_SECONDS = 1.0
IDLE_SECONDS = 60.0
_RESOURCES = {CONFIG_MAP: CONFIG_MAPS, SECRET: SECRETS}

Key = tuple[str, str, str]  # kind, namespace, name
Changed = Callable[[str], None]  # gets the uid of a pod that refers to what has changed


@dataclass(slots=True)
class _Tracked:
    informer: Informer
    watching: asyncio.Task[None]
    users: dict[str, Changed] = field(default_factory=dict)
    frozen: bool = False  # immutable: no longer watched
    idle: asyncio.TimerHandle | None = None


class TrackedObjects:
    def __init__(self, client: Client, *, clock: Clock, rng: random.Random) -> None:
        self._client, self._clock, self._rng = client, clock, rng
        self._tasks = Tasks("objects of pods")
        self._tracked: dict[Key, _Tracked] = {}
        self._held: dict[str, frozenset[Key]] = {}

    def __len__(self) -> int:
        return len(self._tracked)

    async def of(self, pod: Obj, changed: Changed) -> Objects:
        """All that the pod refers to, by (kind, name); from now on `changed` is called with the
        pod's uid when one of them changes, appears or goes. Raises VolumeFailure."""
        keys = self._hold(pod, changed)
        fresh = [key for key in keys if not self._tracked[key].informer.is_synced()]
        if fresh:
            await self._synced(fresh)
        return {(kind, name): self._found(kind, space, name) for kind, space, name in keys}

    def release(self, uid: str) -> None:
        """The pod is over."""
        for key in self._held.pop(uid, ()):
            self._leave(uid, key)

    async def stop(self) -> None:
        for tracked in self._tracked.values():
            if tracked.idle is not None:
                tracked.idle.cancel()
        await self._tasks.stop()

    def _hold(self, pod: Obj, changed: Changed) -> frozenset[Key]:
        uid, namespace = uid_of(pod), namespace_of(pod)
        wanted = (*references(pod), *volume_references(pod))
        keys = frozenset((item.kind, namespace, item.name) for item in wanted)
        held = self._held.get(uid, frozenset())
        for key in held - keys:
            self._leave(uid, key)
        for key in keys - held:
            self._join(uid, key, changed)
        if keys:
            self._held[uid] = keys
        return keys

    def _join(self, uid: str, key: Key, changed: Changed) -> None:
        tracked = self._tracked.get(key)
        if tracked is None or tracked.frozen:
            # A new pod looks again: an immutable object may have been replaced by another one.
            users = tracked.users if tracked is not None else {}
            tracked = self._tracked[key] = self._watch(key)
            tracked.users.update(users)
        tracked.users[uid] = changed
        if tracked.idle is not None:
            tracked.idle.cancel()
            tracked.idle = None

    def _leave(self, uid: str, key: Key) -> None:
        tracked = self._tracked[key]
        tracked.users.pop(uid, None)
        if not tracked.users:
            loop = asyncio.get_running_loop()
            tracked.idle = loop.call_later(IDLE_SECONDS, self._forget, key)

    def _forget(self, key: Key) -> None:
        self._tracked.pop(key).watching.cancel()

    def _watch(self, key: Key) -> _Tracked:
        kind, namespace, name = key
        informer = Informer(
            self._client,
            Selection(_RESOURCES[kind], namespace, field_selector=f"metadata.name={name}"),
            clock=self._clock,
            rng=self._rng,
        )
        watching = self._tasks.supervise(f"{kind} {namespace}/{name}", informer.run)
        tracked = _Tracked(informer, watching)
        informer.on_change(lambda old, new: self._changed(key, tracked, new))
        return tracked

    def _changed(self, key: Key, tracked: _Tracked, new: Obj | None) -> None:
        if new is not None and new.get("immutable"):
            tracked.frozen = True
            asyncio.get_running_loop().call_soon(tracked.watching.cancel)
        if not tracked.informer.is_synced():
            return  # the first answer: whoever asked waits for it
        for uid, changed in list(tracked.users.items()):
            changed(uid)

    async def _synced(self, keys: list[Key]) -> None:
        informers = [self._tracked[key].informer for key in keys]
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await all_of(informer.synced() for informer in informers)
        except TimeoutError:
            late = next(key for key in keys if not self._tracked[key].informer.is_synced())
            raise VolumeFailure(
                f"failed to sync {late[0].lower()} cache: timed out waiting for the condition"
            ) from None

    def _found(self, kind: str, namespace: str, name: str) -> Obj | None:
        tracked = self._tracked[kind, namespace, name]
        return tracked.informer.cache.get(f"{namespace}/{name}")

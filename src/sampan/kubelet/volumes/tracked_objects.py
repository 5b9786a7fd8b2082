"""ConfigMaps and Secrets that pods refer to, watched while they do.

Job: one watch for each object that a pod refers to, shared by all pods that do; tell those pods
    when it changes. Reading costs nothing then: no request per pod and per sync.
Invariant: an object is watched only while a pod refers to it, and a little longer: the next pod
    often wants the same.
Invariant: an immutable object is read and not watched.
Invariant: watches are bounded, of one pod and in all: what a pod refers to beyond that is read, and
    read again after a while, as by upstream's kubelet without watches.
Owner: Kubelet, or whoever runs many nodes in one process: they share one.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import field
from itertools import islice

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, namespace_of, uid_of
from sampan.api.resources import CONFIG_MAPS, SECRETS
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import Tasks, all_of, give_way
from sampan.kubelet.container_spec.generate import references
from sampan.kubelet.contracts.volumes_hook import Objects, VolumeFailure
from sampan.kubelet.volumes.references import CONFIG_MAP, SECRET, volume_references

# As upstream's watch-based manager: who asks waits that long for the first answer.
SYNC_SECONDS = 1.0
IDLE_SECONDS = 60.0
MOST_OF_POD, MOST_WATCHED = 64, 4096
READ_AGAIN_SECONDS = 60.0  # as upstream's manager that reads
PER_TURN = 8  # watches that are begun or ended in one turn of the loop
_RESOURCES = {CONFIG_MAP: CONFIG_MAPS, SECRET: SECRETS}

Key = tuple[str, str, str]  # kind, namespace, name
Changed = Callable[[str], None]  # gets the uid of a pod that refers to what has changed


@dataclass(slots=True)
class _Tracked:
    informer: Informer
    watching: asyncio.Task[None]
    users: dict[str, Changed] = field(default_factory=dict)
    frozen: bool = False  # immutable: no longer watched


@dataclass(frozen=True, slots=True)
class _Read:
    """The objects of a pod that refers to too many to watch them."""

    keys: frozenset[Key]
    found: Objects
    again: asyncio.TimerHandle


class TrackedObjects:
    def __init__(self, client: Client, *, clock: Clock, rng: random.Random) -> None:
        self._client, self._clock, self._rng = client, clock, rng
        self._tasks = Tasks("objects of pods")
        self._tracked: dict[Key, _Tracked] = {}
        self._held: dict[str, frozenset[Key]] = {}
        self._read: dict[str, _Read] = {}
        self._idle: dict[Key, float] = {}  # since when nobody refers to it, the longest first
        self._sweeping = False

    def __len__(self) -> int:
        return len(self._tracked)

    async def of(self, pod: Obj, changed: Changed) -> Objects:
        """All that the pod refers to, by (kind, name); from now on `changed` is called with the
        pod's uid when one of them changes, appears or goes. Raises VolumeFailure."""
        uid, keys = uid_of(pod), _keys_of(pod)
        if len(keys) > MOST_OF_POD or self._too_many(keys):
            return await self._read_all(uid, keys, changed)
        self._forget_read(uid)
        await self._hold(uid, keys, changed)
        fresh = [key for key in keys if not self._tracked[key].informer.is_synced()]
        if fresh:
            await self._synced(fresh)
        return {(kind, name): self._found(kind, space, name) for kind, space, name in keys}

    def _too_many(self, keys: frozenset[Key]) -> bool:
        more = sum(key not in self._tracked for key in keys)
        return bool(more) and len(self._tracked) + more > MOST_WATCHED

    async def _read_all(self, uid: str, keys: frozenset[Key], changed: Changed) -> Objects:
        known = self._read.get(uid)
        if known is not None and known.keys == keys:
            return known.found
        self.release(uid)
        found = {(kind, name): await self._get(kind, space, name) for kind, space, name in keys}

        def read_again() -> None:
            self._read.pop(uid, None)
            changed(uid)

        again = asyncio.get_running_loop().call_later(READ_AGAIN_SECONDS, read_again)
        self._read[uid] = _Read(keys, found, again)
        return found

    async def _get(self, kind: str, namespace: str, name: str) -> Obj | None:
        try:
            return await self._client.get(_RESOURCES[kind], namespace, name)
        except NotFound:
            return None
        except ApiError as error:
            raise VolumeFailure(f"failed to fetch {kind.lower()} {name}: {error}") from error

    def release(self, uid: str) -> None:
        """The pod is over."""
        self._forget_read(uid)
        for key in self._held.pop(uid, ()):
            self._leave(uid, key)

    def _forget_read(self, uid: str) -> None:
        if (known := self._read.pop(uid, None)) is not None:
            known.again.cancel()

    async def stop(self) -> None:
        for known in self._read.values():
            known.again.cancel()
        await self._tasks.stop()

    async def _hold(self, uid: str, keys: frozenset[Key], changed: Changed) -> None:
        held = self._held.get(uid, frozenset())
        if keys:
            self._held[uid] = keys
        for key in held - keys:
            self._leave(uid, key)
        for number, key in enumerate(sorted(keys - held), 1):
            if not number % PER_TURN:
                await give_way()
            self._join(uid, key, changed)

    def _join(self, uid: str, key: Key, changed: Changed) -> None:
        tracked = self._tracked.get(key)
        if tracked is None or tracked.frozen:
            # A new pod looks again: an immutable object may have been replaced by another one.
            users = tracked.users if tracked is not None else {}
            tracked = self._tracked[key] = self._watch(key)
            tracked.users.update(users)
        tracked.users[uid] = changed
        self._idle.pop(key, None)

    def _leave(self, uid: str, key: Key) -> None:
        tracked = self._tracked.get(key)
        if tracked is None:
            return  # it was cut off before it came to this one
        tracked.users.pop(uid, None)
        if not tracked.users:
            self._idle[key] = self._clock.monotonic()
            if not self._sweeping:
                self._sweeping = True
                self._tasks.start("idle", self._sweep())

    async def _sweep(self) -> None:
        """What nobody has referred to for a while is no longer watched."""
        try:
            while self._idle:
                since = next(iter(self._idle.values()))
                await self._clock.sleep(since + IDLE_SECONDS - self._clock.monotonic())
                latest = self._clock.monotonic() - IDLE_SECONDS
                due = [
                    key for key, since in islice(self._idle.items(), PER_TURN) if since <= latest
                ]
                for key in due:
                    del self._idle[key]
                    self._tracked.pop(key).watching.cancel()
                await give_way()
        finally:
            self._sweeping = False

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
            # It may have come just now: the next step finds it.
            late = (key for key in keys if not self._tracked[key].informer.is_synced())
            kind, *_ = next(late, keys[0])
            raise VolumeFailure(
                f"failed to sync {kind.lower()} cache: timed out waiting for the condition"
            ) from None

    def _found(self, kind: str, namespace: str, name: str) -> Obj | None:
        tracked = self._tracked[kind, namespace, name]
        return tracked.informer.cache.get(f"{namespace}/{name}")


def _keys_of(pod: Obj) -> frozenset[Key]:
    namespace = namespace_of(pod)
    wanted = (*references(pod), *volume_references(pod))
    return frozenset((item.kind, namespace, item.name) for item in wanted)

"""Mirror pods: how the API shows the pods that this node has from files or from a URL.

Job: for each static pod keep one pod in the API that looks like it: made, made again when somebody
    deletes it or when it shows an older version, removed when the static pod is gone.
Invariant: only pods that carry the mirror annotation are ever deleted here.
Invariant: a mirror that was made and deleted before any source showed it is missed, too.
Invariant: a mirror without a static pod is removed only after every source has spoken.
Owner: Kubelet. PodSync says which static pods run, SyncLoop what the API shows.
"""

import contextlib
from collections.abc import Callable

from sampan.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    copy_of,
    is_deleted,
    key_of,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import PODS
from sampan.api.rules.pods import HASH_ANNOTATION, MIRROR_ANNOTATION, is_mirror
from sampan.client.contract import Preconditions
from sampan.core.backoff import Backoff, with_jitter
from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag
from sampan.core.log import get_logger
from sampan.kubelet.context import NodeContext

log = get_logger(__name__)

RETRY = Backoff(first_seconds=0.5, cap_seconds=10.0)
# A watch shows a new mirror within milliseconds; then it is known when it goes.
SHOWN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Make:
    pod: Obj


@dataclass(frozen=True, slots=True)
class Remove:
    mirror: Obj


Action = Make | Remove


def mirror_of(pod: Obj, node: Obj) -> Obj:
    """What the API is to show. The node owns it: it goes when the node does."""
    meta, notes = meta_of(pod), annotations_of(pod)
    kept = {key: meta[key] for key in ("name", "namespace", "labels") if meta.get(key)}
    kept["annotations"] = {**notes, MIRROR_ANNOTATION: notes[HASH_ANNOTATION]}
    kept["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "name": name_of(node),
            "uid": uid_of(node),
            "controller": True,
        }
    ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": copy_of(pod["spec"])}


def shows(mirror: Obj, pod: Obj) -> bool:
    """Is it the mirror of just this version?"""
    told = annotations_of(mirror).get(MIRROR_ANNOTATION)
    return key_of(mirror) == key_of(pod) and told == annotations_of(pod).get(HASH_ANNOTATION)


def next_action(pod: Obj | None, mirror: Obj | None, orphaned: bool) -> Action | None:
    """`orphaned`: every source has spoken, and none has a pod of this name."""
    if mirror is None:
        return Make(pod) if pod is not None else None
    if pod is not None:
        return Remove(mirror) if is_deleted(mirror) or not shows(mirror, pod) else None
    return Remove(mirror) if orphaned else None


@dataclass(slots=True)
class _Entry:
    pod: Obj | None = None  # the static pod that runs
    mirror: Obj | None = None  # as the API shows it
    over: bool = False  # the static pod ended, so its mirror has nothing to show
    writing: bool = False
    shown: str = ""  # the uid of the last mirror that the API's watch has shown


class Mirrors:
    def __init__(
        self,
        context: NodeContext,
        *,
        node: Callable[[], Obj],
        registered: Flag,
        is_orphaned: Callable[[str], bool],
        shown: Callable[[Obj, Obj | None], None],
    ) -> None:
        """`is_orphaned`: has every source spoken, and none a static pod of that full name?
        `shown` is told (static pod, its mirror) when the mirror comes, changes or goes."""
        self._client, self._node, self._registered = context.client, node, registered
        self._is_orphaned, self._shown = is_orphaned, shown
        self._tasks, self._clock, self._rng = context.tasks, context.clock, context.rng
        self._entries: dict[str, _Entry] = {}

    def want(self, pod: Obj) -> None:
        """The static pod runs here."""
        entry = self._entries.setdefault(key_of(pod), _Entry())
        if entry.pod is None or uid_of(entry.pod) != uid_of(pod):
            entry.pod, entry.over = pod, False
            self._tell(entry)
            self._go_on(key_of(pod), entry)

    def unwant(self, pod: Obj) -> None:
        """Nothing of the static pod is left."""
        entry = self._entries.get(key_of(pod))
        if entry is not None and entry.pod is not None and uid_of(entry.pod) == uid_of(pod):
            entry.pod, entry.over = None, True
            self._go_on(key_of(pod), entry)

    def seen(self, mirror: Obj) -> None:
        """The API shows it like this now."""
        entry = self._entries.setdefault(key_of(mirror), _Entry())
        entry.mirror, entry.shown = mirror, uid_of(mirror)
        self._tell(entry)
        self._go_on(key_of(mirror), entry)

    def gone(self, mirror: Obj) -> None:
        entry = self._entries.get(key_of(mirror))
        if entry is None or entry.mirror is None or uid_of(entry.mirror) != uid_of(mirror):
            return
        entry.mirror = None
        self._tell(entry)
        self._go_on(key_of(mirror), entry)

    def sweep(self) -> None:
        """Every source has spoken by now."""
        for key, entry in list(self._entries.items()):
            self._go_on(key, entry)

    def of(self, pod: Obj) -> Obj | None:
        """The mirror that shows just this static pod."""
        entry = self._entries.get(key_of(pod))
        mirror = entry.mirror if entry is not None else None
        return mirror if mirror is not None and shows(mirror, pod) else None

    def is_idle(self) -> bool:
        return not any(entry.writing for entry in self._entries.values())

    def _tell(self, entry: _Entry) -> None:
        if entry.pod is not None:
            self._shown(entry.pod, self.of(entry.pod))

    def _next(self, key: str, entry: _Entry) -> Action | None:
        return next_action(entry.pod, entry.mirror, entry.over or self._is_orphaned(key))

    def _go_on(self, key: str, entry: _Entry) -> None:
        if entry.writing:
            return
        if self._next(key, entry) is not None:
            entry.writing = True
            self._tasks.start(f"mirror {key}", self._write_all(key, entry))
        elif entry.pod is None and entry.mirror is None:
            self._entries.pop(key, None)

    async def _write_all(self, key: str, entry: _Entry) -> None:
        failures = 0
        try:
            await self._registered.wait()  # its owner must be there first
            while (action := self._next(key, entry)) is not None:
                try:
                    await self._perform(action, entry)
                    failures = 0
                except ApiError as error:
                    failures += 1
                    if failures in (1, 10):
                        log.warning("mirror pod was not written, trying again", pod=key,
                                    error=error)  # fmt: skip
                    pause = with_jitter(RETRY.delay(failures), 0.5, self._rng)
                    await self._clock.sleep(max(pause, float(error.retry_after_seconds or 0)))
        finally:
            entry.writing = False
        self._go_on(key, entry)

    async def _perform(self, action: Action, entry: _Entry) -> None:
        match action:
            case Make(pod):
                made = entry.mirror = await self._made(pod)
                self._tell(entry)
                self._tasks.start(f"is {key_of(made)} shown?", self._confirm(entry, made))
            case Remove(mirror):
                log.info("removing a mirror pod", pod=key_of(mirror))
                await self._removed(mirror)
                if entry.mirror is not None and uid_of(entry.mirror) == uid_of(mirror):
                    entry.mirror = None
                    self._tell(entry)

    async def _confirm(self, entry: _Entry, made: Obj) -> None:
        """Sources deliver sets: what came and went between two of them was in none."""
        while True:
            await self._clock.sleep(SHOWN_SECONDS)
            if entry.mirror is not made or entry.shown == uid_of(made):
                return
            try:
                found = await self._client.get(PODS, namespace_of(made), name_of(made))
                if uid_of(found) == uid_of(made):
                    continue  # the watch is late
            except NotFound:
                pass
            except ApiError:
                continue
            if entry.mirror is made:
                self.gone(made)
            return

    async def _made(self, pod: Obj) -> Obj:
        try:
            return await self._client.create(PODS, mirror_of(pod, self._node()), namespace_of(pod))
        except AlreadyExists:
            found = await self._client.get(PODS, namespace_of(pod), name_of(pod))
            if not is_mirror(found):
                raise  # an ordinary pod has the name: wait until it is gone
            return found

    async def _removed(self, mirror: Obj) -> None:
        with contextlib.suppress(NotFound, Conflict):  # somebody else was faster
            await self._client.delete(
                PODS,
                namespace_of(mirror),
                name_of(mirror),
                grace_seconds=0,
                preconditions=Preconditions(uid_of(mirror)),
            )

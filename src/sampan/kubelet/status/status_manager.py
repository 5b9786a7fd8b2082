"""StatusManager: the one writer of pod statuses, and of the pod's final removal from the API.

Job: bring each pod's newest status to the API, only when it differs, as the smallest patch, for
    as long as it takes; delete the pod from the API when it has ended and deletion was asked for.
Invariant: statuses of one pod are written in order, and only the newest one matters.
Invariant: a terminal phase is never replaced by another.
Invariant: what is said to be passing is written only if nothing newer comes within a moment; what
    is said to have time is written a moment later, before anything newer.
Invariant: who changes back what was written (a webhook, another writer) is answered ever more
    seldom, and does not keep a pod from being deleted.
Invariant: a pod is deleted only after its last status was written, and only under its own uid.
Owner: PodSync says what is true, SyncLoop what the API shows; nobody else writes statuses.
"""

import asyncio
import random
from dataclasses import field

import orjson

from sampan.api.errors import ApiError, Conflict, Invalid, NotFound
from sampan.api.objects import Obj, key_of, name_of, namespace_of, revision_of, uid_of
from sampan.api.resources import PODS
from sampan.api.rules.pods import TERMINAL_PHASES, is_static
from sampan.client.contract import Client, Preconditions
from sampan.core.backoff import Backoff, with_jitter
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.status.pod_status import BY_KUBELET, GOES, OWNED

log = get_logger(__name__)

RETRY = Backoff(first_seconds=0.2, cap_seconds=10.0)
PASSING_SECONDS = 0.1
# As long as a container's start keeps us busy before the runtime does the rest.
SOON_SECONDS = 0.006
# Lists that a strategic patch merges by key: what left must be said.
_KEYED = ("podIPs", "hostIPs")
_NONE: Obj = {}


@dataclass(slots=True)
class _Entry:
    pod: Obj  # for its names only
    target: Obj | None  # the pod in the API that shows it; a static pod's is its mirror
    known: Obj  # the status that the API has, as far as we know
    revision: int
    wanted: Obj | None = None
    delete: bool = False
    writing: bool = False
    gone: bool = field(default=False)
    held: asyncio.TimerHandle | None = None  # what is wanted waits for its moment
    newer: Obj | None = None  # wanted after it: what is held will be seen first
    keeps_order: bool = False  # what is held will be seen
    written: int = 0  # which status was written last
    repeats: int = 0  # how often it was written again
    repeat_at: float = 0.0  # the loop's time: not before
    compared: tuple[Obj, Obj, Obj | None] | None = None  # known, wanted, and the patch between


class StatusManager:
    def __init__(self, client: Client, *, tasks: Tasks, clock: Clock, rng: random.Random) -> None:
        self._client, self._tasks, self._clock, self._rng = client, tasks, clock, rng
        self._entries: dict[str, _Entry] = {}

    def status_of(self, uid: str) -> Obj | None:
        """The newest status that is, or is about to be, in the API."""
        entry = self._entries.get(uid)
        if entry is None:
            return None
        if entry.newer is not None:
            return entry.newer
        return entry.wanted if entry.wanted is not None else entry.known

    def is_idle(self) -> bool:
        return not any(entry.writing or entry.held for entry in self._entries.values())

    def set(self, pod: Obj, status: Obj) -> None:
        """This is how the pod is now."""
        self._go_on(self._wanting(pod, status))

    def set_soon(self, pod: Obj, status: Obj) -> None:
        """This is how the pod is now: to be told, but other work goes first."""
        entry = self._wanting(pod, status)
        if not entry.writing and entry.newer is None:
            entry.keeps_order = True
            self._hold(entry, SOON_SECONDS)

    def set_passing(self, pod: Obj, status: Obj) -> None:
        """This is how the pod is now, and likely to be otherwise in a moment."""
        entry = self._wanting(pod, status)
        if not entry.writing:
            self._hold(entry, PASSING_SECONDS)

    def close(self) -> None:
        """Nothing is begun any more; what is being written is stopped by the owner of the tasks."""
        for entry in self._entries.values():
            entry.gone = True
            self._release(entry)

    def seen(self, pod: Obj) -> None:
        """The API shows the pod like this now: ours is the truth, so what differs is written."""
        entry = self._entry(pod)
        # The newest one, which others hold anyway: an old one would be kept for its names alone.
        entry.pod = pod
        if not is_static(pod):
            entry.target = pod
        if revision_of(pod) > entry.revision:
            entry.known, entry.revision = pod.get("status") or {}, revision_of(pod)
            self._go_on(entry)

    def mirrored(self, pod: Obj, mirror: Obj | None) -> None:
        """The API shows a static pod by this mirror now; None: not at all."""
        entry = self._entry(pod)
        if mirror is None:
            entry.target = None
            return
        if entry.target is None or uid_of(entry.target) != uid_of(mirror):
            entry.target, entry.revision = mirror, 0
        if revision_of(mirror) > entry.revision:
            entry.known, entry.revision = mirror.get("status") or {}, revision_of(mirror)
            self._go_on(entry)

    def delete(self, pod: Obj) -> None:
        """Nothing of the pod is left: remove it from the API, after its last status."""
        entry = self._entry(pod)
        entry.delete = True
        self._go_on(entry)

    def forget(self, uid: str) -> None:
        entry = self._entries.pop(uid, None)
        if entry is not None:
            entry.gone = True
            self._release(entry)

    def _entry(self, pod: Obj) -> _Entry:
        entry = self._entries.get(uid_of(pod))
        if entry is None:
            target = None if is_static(pod) else pod
            entry = _Entry(pod, target, pod.get("status") or {}, revision_of(pod))
            self._entries[uid_of(pod)] = entry
        return entry

    def _wanting(self, pod: Obj, status: Obj) -> _Entry:
        entry = self._entry(pod)
        before = self.status_of(uid_of(pod)) or {}
        if before.get("phase") in TERMINAL_PHASES and status.get("phase") != before["phase"]:
            status = {**status, "phase": before["phase"]}
        if entry.keeps_order:
            entry.newer = status
        else:
            entry.wanted = status
        return entry

    def _hold(self, entry: _Entry, seconds: float) -> None:
        """Not for longer than it is held already."""
        loop = asyncio.get_running_loop()
        if entry.held is None or entry.held.when() > loop.time() + seconds:
            self._release(entry)
            entry.held = loop.call_later(seconds, self._go_on, entry)

    def _release(self, entry: _Entry) -> None:
        if entry.held is not None:
            entry.held.cancel()
            entry.held = None

    def _go_on(self, entry: _Entry) -> None:
        self._release(entry)
        if entry.writing or entry.gone or not self._has_work(entry):
            return
        entry.writing = True
        self._tasks.start(f"report {key_of(entry.pod)}", self._write_all(entry))

    def _has_work(self, entry: _Entry) -> bool:
        if entry.keeps_order and self._patch(entry) is None:
            self._next(entry)  # the API says already what was held
        if entry.target is None:
            return False
        if entry.delete:
            return True
        if entry.wanted is None or entry.wanted is entry.known:
            return False
        if self._patch(entry) is None:
            # They say the same: one copy, the one that is shared with the API's cache, is enough.
            entry.wanted, entry.compared = entry.known, None
            return False
        return True

    def _next(self, entry: _Entry) -> None:
        """What was to be seen has been told."""
        if entry.newer is not None:
            entry.wanted, entry.newer = entry.newer, None
        entry.keeps_order = False

    def _patch(self, entry: _Entry) -> Obj | None:
        """Computed once for each pair: comparing costs more than anything else here."""
        known, wanted = entry.known, entry.wanted if entry.wanted is not None else entry.known
        before = entry.compared
        if before is None or before[0] is not known or before[1] is not wanted:
            before = entry.compared = (known, wanted, status_patch(known, wanted))
        return before[2]

    async def _write_all(self, entry: _Entry) -> None:
        failures = 0
        try:
            while not entry.gone and self._has_work(entry):
                if (pause := self._pause(entry)) > 0:
                    self._hold(entry, pause)
                    return
                try:
                    await self._write(entry)
                    failures = 0
                except ApiError as error:
                    failures += 1
                    if failures in (1, 10):
                        log.warning(
                            "pod status was not written, trying again",
                            pod=key_of(entry.pod),
                            error=error,
                        )
                    pause = with_jitter(RETRY.delay(failures), 0.5, self._rng)
                    await self._clock.sleep(max(pause, float(error.retry_after_seconds or 0)))
        finally:
            entry.writing = False

    def _pause(self, entry: _Entry) -> float:
        """What was written and changed back waits, as for upstream's next round."""
        if entry.delete or not entry.written or entry.wanted is None:
            return 0.0
        if _identity(entry.wanted) != entry.written:
            return 0.0
        return entry.repeat_at - asyncio.get_running_loop().time()

    def _note_write(self, entry: _Entry, status: Obj) -> None:
        identity = _identity(status)
        entry.repeats = entry.repeats + 1 if identity == entry.written else 0
        entry.written = identity
        entry.repeat_at = asyncio.get_running_loop().time() + RETRY.delay(entry.repeats)

    async def _write(self, entry: _Entry) -> None:
        assert entry.target is not None, "only what the API shows has work"
        pod, uid = entry.target, uid_of(entry.target)
        try:
            patch, wanted = self._patch(entry), entry.wanted or {}
            if patch is not None and not (entry.delete and _identity(wanted) == entry.written):
                body: Obj = {"metadata": {"uid": uid}, "status": patch}
                answer = await self._client.patch(
                    PODS, namespace_of(pod), name_of(pod), body, subresource="status"
                )
                self._note_write(entry, wanted)
                self._next(entry)
                if _is_same(entry.target, pod):
                    entry.known, entry.revision = answer.get("status") or {}, revision_of(answer)
            elif entry.delete:
                await self._client.delete(
                    PODS,
                    namespace_of(pod),
                    name_of(pod),
                    grace_seconds=0,
                    preconditions=Preconditions(uid),
                )
                self._end(entry)
        except (NotFound, Conflict, Invalid) as error:
            if not isinstance(error, NotFound) and await self._is_still_there(pod):
                raise  # somebody else wrote at the same moment: once more
            # The pod is gone, or another one has its name by now: our words are about nobody.
            log.debug(
                "pod was deleted, its status is not written", pod=key_of(pod), uid=uid, error=error
            )
            if not is_static(entry.pod):
                self._end(entry)
            elif _is_same(entry.target, pod):
                entry.target = None  # its next mirror will be told everything

    async def _is_still_there(self, pod: Obj) -> bool:
        """Under its own uid?"""
        try:
            found = await self._client.get(PODS, namespace_of(pod), name_of(pod))
        except NotFound:
            return False
        return uid_of(found) == uid_of(pod)

    def _end(self, entry: _Entry) -> None:
        entry.gone = True
        self._release(entry)
        if self._entries.get(uid_of(entry.pod)) is entry:
            del self._entries[uid_of(entry.pod)]


def _identity(status: Obj) -> int:
    """Kept instead of the status, for as long as its pod."""
    return hash(orjson.dumps(status)) or 1  # 0: none was written


def _is_same(one: Obj | None, other: Obj) -> bool:
    return one is not None and uid_of(one) == uid_of(other)


def status_patch(known: Obj, wanted: Obj) -> Obj | None:
    """The strategic merge patch that makes `known` say what `wanted` says; None: it does."""
    patch: Obj = {}
    for name, value in wanted.items():
        before = known.get(name)
        if before == value:
            continue
        if name == "conditions":
            patch |= _conditions_patch(before or [], value)
        elif before is None or not _same(before, value):
            merged = name in _KEYED and before
            patch[name] = [{"$patch": "replace"}, *value] if merged else value
    for name in ("reason", "message"):
        if known.get(name) and name not in wanted:
            patch[name] = None
    return patch or None


def _conditions_patch(known: list[Obj], wanted: list[Obj]) -> Obj:
    changed = _changed_conditions(known, wanted)
    if not changed or all(item["type"] in OWNED for item in wanted):
        return {"conditions": changed} if changed else {}
    # As upstream: those of others come first.
    order = [{"type": item["type"]} for item in wanted]
    return {"conditions": changed, "$setElementOrder/conditions": order}


def _changed_conditions(known: list[Obj], wanted: list[Obj]) -> list[Obj]:
    """Only ours: a patch by type leaves everybody else's alone."""
    before = {item["type"]: item for item in known}
    changed = []
    for item in wanted:
        old = before.get(item["type"])
        ours = item["type"] in OWNED or item.get("reason") == BY_KUBELET
        if ours and (not old or _tells_more(old, item) or not _same(old, item)):
            changed.append(_condition_patch(old or _NONE, item))
    there = {item["type"] for item in wanted}
    gone = [name for name in GOES if name in before and name not in there]
    return changed + [{"$patch": "delete", "type": name} for name in gone]


def _tells_more(old: Obj, item: Obj) -> bool:
    """Seen at a glance: most conditions that change do so in one of these."""
    return bool(
        old.get("status") != item.get("status")
        or old.get("observedGeneration") != item.get("observedGeneration")
    )


def _condition_patch(old: Obj, item: Obj) -> Obj:
    """A merge keeps what it is not told of: a reason that went must be named."""
    if not old:
        return {field: value for field, value in item.items() if value is not None}
    gone = {field: None for field in old if field not in item}
    told = {
        field: value
        for field, value in item.items()
        if value is not None or old.get(field) is not None
    }
    return {**gone, **told}


def _same(known: object, wanted: object) -> bool:
    """But for what says nothing: a server may keep or drop null and empty fields."""
    if known == wanted:
        return True
    if isinstance(known, dict) and isinstance(wanted, dict):
        return all(
            (key in known and _same(known[key], item))
            or (_says_nothing(item) and _says_nothing(known.get(key)))
            for key, item in wanted.items()
        ) and all(_says_nothing(item) for key, item in known.items() if key not in wanted)
    if isinstance(known, list) and isinstance(wanted, list):
        return len(known) == len(wanted) and all(map(_same, known, wanted))
    return False


def _says_nothing(value: object) -> bool:
    if isinstance(value, dict):
        return all(_says_nothing(item) for item in value.values())
    return value is None or value == ""

"""The scheduler: takes what the API says, decides, and writes what was decided.

Job: watch pods and nodes, keep queue and cache, decide one pod at a time, bind in the background.
Invariant: pods of another scheduler, or with a node, are never touched.
Invariant: what was assumed for a binding that failed is taken back before the pod is tried again.
Invariant: with nothing to decide there is no timer but the queue's next one, and no work.
Owner: the process that runs it; one per identity and leader.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sampan.api.errors import ApiError, Conflict, NotFound
from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of, uid_of
from sampan.api.resources import (
    CSI_NODES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    STORAGE_CLASSES,
)
from sampan.client.contract import Client
from sampan.client.events import EventRecorder, reference
from sampan.client.informer import Informers
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.alarm import Alarm
from sampan.scheduler.batch import Batches
from sampan.scheduler.bind import (
    GATED,
    GATED_MESSAGE,
    UNSCHEDULABLE,
    bind,
    not_nominated,
    not_scheduled,
    write_status,
)
from sampan.scheduler.bind_volumes import Promise, VolumeBinder, VolumesNotBound
from sampan.scheduler.budgets import Budget, budget_of
from sampan.scheduler.cache_state import CacheState
from sampan.scheduler.changes import changes
from sampan.scheduler.decide import Chosen, Decision, Refused
from sampan.scheduler.evict import evict, tell
from sampan.scheduler.expected import Nominations
from sampan.scheduler.explain import message, nobody_to_preempt, not_preempted
from sampan.scheduler.extender import Extender, ExtenderFailed
from sampan.scheduler.extenders import Extenders
from sampan.scheduler.extra import Answer, Extra
from sampan.scheduler.hints import Hints
from sampan.scheduler.measures import ERROR, SCHEDULED, UNSCHEDULED, Measures
from sampan.scheduler.permits import NotPermitted, Permits
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.preempt import (
    NOT_HELPFUL,
    WAITING,
    Candidate,
    Hopeless,
    Preemptor,
    best,
    candidates,
    not_eligible,
    preempt,
)
from sampan.scheduler.profile import DEFAULT_PROFILE, Profile
from sampan.scheduler.queue_state import BACKOFF, Place, QueueState, Waiting, all_or_none
from sampan.scheduler.records import Record, Records, best_of, refusing, written
from sampan.scheduler.requeue import Event, PodGone, StorageChanged
from sampan.scheduler.resident import resident, resident_of
from sampan.scheduler.rows import (
    PodRow,
    is_finished,
    node_of,
    node_row,
    nominated_of,
    pod_row,
    scheduler_of,
    without,
)

MOST_CALLS = 256  # bindings and status writes in flight; the next decision waits
CALL_SECONDS = 30.0
CONFIRM_SECONDS = 900.0  # how long after its binding a pod may stay unseen
CROWD = 8  # more pods than these wait: only the first get a full record
DECISIONS_PER_TURN = 16  # then others of the event loop have theirs

log = get_logger(__name__)


class Scheduler:
    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        profiles: Sequence[Profile] = (DEFAULT_PROFILE,),
        extenders: Sequence[Extender] = (),
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._client, self._clock, self._rng = client, clock, rng
        self._profiles = {one.scheduler_name: one for one in profiles}
        self._metrics, self._backoff = metrics, backoff
        self._outside = Extenders(extenders)
        self._begin()

    def _begin(self) -> None:
        """Everything that is known comes from the API, so a new run starts with nothing."""
        self._cache = CacheState()
        columns = self._cache.columns
        self._batches = {name: Batches(columns, one) for name, one in self._profiles.items()}
        self._permits = Permits(self._cache, self._reconsider)
        self._plugins = {
            name: [(made(args, self._permits), weight) for made, args, weight in one.plugins]
            for name, one in self._profiles.items()
        }
        self._nodes: dict[str, Obj] = {}  # as objects, for extenders
        self.records = Records()
        self._binder = VolumeBinder(self._client, self._cache.columns.volumes)
        self._nominations = Nominations()
        [first, *others] = self._profiles.values()
        hints = Hints(self._cache, self._nominations, first)
        # With several profiles, a rule may mean one thing here and another there.
        self._queue = QueueState(all_or_none if others else hints.helped, self._backoff)
        self._budgets: dict[str, Budget] = {}  # by namespace/name
        self._unconfirmed: dict[str, float] = {}  # bound pods → when they are given up
        self._evicting: set[str] = set()  # pods whose victims are being told
        self._pods: dict[str, Obj] = {}  # the pods of the queue, by uid
        self._measures = Measures(self._metrics, self._queue)
        component = first.scheduler_name
        self._events = EventRecorder(self._client, component, clock=self._clock, rng=self._rng)
        self._tasks = Tasks("scheduler")
        self._calls = 0  # bindings and status writes in flight
        self._wake = asyncio.Event()
        self._alarm = Alarm(self._clock, self._tasks, self._wake.set)

    async def run(self) -> None:
        """Until cancelled; may be run again after a failure."""
        self._begin()
        informers = Informers(self._client, clock=self._clock, rng=self._rng)
        try:
            informers.of(NAMESPACES).on_change(self.namespace_changed)
            informers.of(NODES).on_change(self.node_changed)
            informers.of(PODS).on_change(self.pod_changed)
            informers.of(POD_DISRUPTION_BUDGETS).on_change(self.budget_changed)
            volumes = self._cache.columns.volumes
            for resource, put in (
                (PERSISTENT_VOLUME_CLAIMS, volumes.put_claim),
                (PERSISTENT_VOLUMES, volumes.put_volume),
                (STORAGE_CLASSES, volumes.put_class),
                (CSI_NODES, volumes.put_limits),
            ):
                informers.of(resource).on_change(self._storage_changes(put))
            informers.start()
            await informers.synced()
            self._tasks.supervise("events", self._events.run)
            await self._schedule()
        finally:
            await informers.stop()
            await self._tasks.stop()

    # What the API says.

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if self._outside:
                self._nodes[name_of(new)] = new
            self._happened(self._cache.put_node(node_row(new)))
        elif old is not None:
            self._nodes.pop(name_of(old), None)
            self._happened(self._cache.remove_node(name_of(old)))

    def namespace_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if old is None or labels_of(old) != labels_of(new):
                self._happened(self._cache.put_namespace(name_of(new), labels_of(new)))
        elif old is not None:
            self._happened(self._cache.put_namespace(name_of(old), None))

    def budget_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._budgets[key_of(new)] = budget_of(new)
        elif old is not None:
            self._budgets.pop(key_of(old), None)

    def _storage_changes(
        self, put: Callable[[str, Obj | None], None]
    ) -> Callable[[Obj | None, Obj | None], None]:
        def changed(old: Obj | None, new: Obj | None) -> None:
            obj = new if new is not None else old
            assert obj is not None
            put(key_of(obj), new)
            self._binder.changed()
            self._happened(StorageChanged(key_of(obj)))

        return changed

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._pod_gone(uid_of(old))
        if new is None:
            return
        if is_finished(new):
            self._pod_gone(uid_of(new))
        elif node := node_of(new):
            uid = uid_of(new)
            self._unqueue(uid)
            self._unconfirmed.pop(uid, None)
            for event in self._cache.put_pod(uid, node, resident_of(new)):
                self._happened(event)
        elif scheduler_of(new) in self._profiles:
            self._pod_waits(new)

    def _pod_gone(self, uid: str) -> None:
        self._unconfirmed.pop(uid, None)
        self._withdrawn(uid)
        self._happened(self._cache.remove_pod(uid))

    def _pod_waits(self, pod: Obj) -> None:
        uid = uid_of(pod)
        if is_deleted(pod):
            self._withdrawn(uid)
            return
        if uid not in self._queue and self._cache.node_of(uid) is not None:
            return  # bound by us, and this is from before: the confirmation is on its way
        row, before = self._row(pod), self._pods.get(uid)
        self._pods[uid] = pod
        if row.nominated:
            self._nominations.put(resident(row), row.nominated)
        elif before is not None and nominated_of(before):
            self._nominations.remove(uid)  # somebody took it back
        self._queue.put(row, self._clock.monotonic())
        waiting = self._queue.get(uid)
        if waiting is not None and waiting.place is Place.GATED:
            self._say_not_scheduled(pod, GATED, GATED_MESSAGE)
        self._wake.set()

    def _row(self, pod: Obj) -> PodRow:
        """With what the plugins say of its turn."""
        row = pod_row(pod)
        for plugin, _ in self._plugins[row.scheduler]:
            held = plugin.pre_enqueue(pod)
            if held is not None:
                row = replace(row, gates=(*row.gates, f"{plugin.name}: {held}"))
            order = plugin.sort_key(pod)
            if order is not None:
                row = replace(row, order=order)
        ignored = self._outside.resources
        return without(row, ignored) if ignored else row

    def _reconsider(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is not None:
            self._queue.put(self._row(pod), self._clock.monotonic())
            self._queue.activate(uid, self._clock.monotonic())
            self._wake.set()

    def _withdrawn(self, uid: str) -> None:
        """A pod that waited is gone; who was kept off the room that was made for it may have it."""
        waiting, node = self._queue.get(uid), self._nominations.node_of(uid)
        self._unqueue(uid)
        if node and waiting is not None:
            self._happened(PodGone(resident(waiting.pod), node))

    def _unqueue(self, uid: str) -> None:
        self._queue.remove(uid)
        self._pods.pop(uid, None)
        self._nominations.remove(uid)

    def _happened(self, event: Event | None) -> None:
        if event is not None:
            self._queue.event(event, self._clock.monotonic())
            self._wake.set()

    # Deciding.

    async def _schedule(self) -> None:
        while True:
            for _ in range(DECISIONS_PER_TURN):
                if self._calls >= MOST_CALLS or not await self._attempt():
                    break
            if self._calls < MOST_CALLS and self._queue.has_next():
                await asyncio.sleep(0)
                continue
            self._alarm.set(self._next_alarm())
            await self._wake.wait()
            self._wake.clear()
            self._queue.flush(self._clock.monotonic())
            self._expire()

    def _next_alarm(self) -> float | None:
        moments = (self._queue.next_flush(), next(iter(self._unconfirmed.values()), None))
        return min((one for one in moments if one is not None), default=None)

    def _expire(self) -> None:
        """Bindings that were answered and never seen: the pod's room is not held for ever."""
        now = self._clock.monotonic()
        for uid in [one for one, until in self._unconfirmed.items() if until <= now]:
            del self._unconfirmed[uid]
            log.warning("a bound pod was never seen on its node", uid=uid)
            self._happened(self._cache.forget(uid))

    async def _attempt(self) -> bool:
        """One pod; False where there is none to try."""
        started = self._clock.monotonic()
        waiting = self._queue.pop(started)
        if waiting is None:
            return False
        row = waiting.pod
        pod = self._pods[row.uid]
        try:
            decision = await self._decided(pod, row)
        except ExtenderFailed as error:
            self._not_decided(pod, row, error, started)
            return True
        if row.uid not in self._queue:
            return True  # gone, or placed by others, while an extender was asked
        match decision:
            case Chosen(node):
                self._place(pod, waiting, decision, node, started)
            case Refused():
                await self._refuse(pod, waiting, decision, started)
        return True

    async def _decided(self, pod: Obj, row: PodRow) -> Decision:
        plugins = self._plugins[row.scheduler]
        answers: list[Answer] = []
        for plugin, _ in plugins:
            why = plugin.pre_filter(pod)
            if why is not None:
                count = len(self._cache.columns)
                return Refused(count, (), beforehand=why, beforehand_rule=plugin.name)
        batches = self._batches[row.scheduler]
        if self._outside.concern(pod):
            feasible = batches.feasible(row.shape)
            nodes = [self._nodes[name] for name in feasible if name in self._nodes]
            answers = await self._outside.answers(pod, nodes)
        expected = self._nominations.for_others(row.uid, row.priority)
        first = self._nominations.node_of(row.uid)
        extra = Extra(pod, plugins, answers) if plugins or answers else None
        return batches.decide(row.shape, self._rng, expected, first, extra)

    def _not_decided(self, pod: Obj, row: PodRow, error: Exception, started: float) -> None:
        now = self._clock.monotonic()
        self._queue.failed(row.uid, now)
        self._measures.attempted(ERROR, now - started, row.scheduler)
        log.warning("no decision", pod=row.key, error=error)
        self._events.record(reference(pod), "Warning", "FailedScheduling", str(error))
        self._say_not_scheduled(pod, "SchedulerError", str(error))

    def _place(self, pod: Obj, waiting: Waiting, chosen: Chosen, node: str, started: float) -> None:
        row = waiting.pod
        self._remember(row, chosen)
        promise = self._binder.promise(row.shape, self._cache.snapshot(), node)
        self._cache.assume(row.uid, node, resident(row))
        self._nominations.remove(row.uid)
        plugins = [plugin for plugin, _ in self._plugins[row.scheduler]]
        try:
            for plugin in plugins:
                if (why := plugin.reserve(pod, node)) is not None:
                    raise NotPermitted(plugin.name, why)
            must_wait = self._permits.ask(plugins, pod, node)
        except NotPermitted as error:
            self._undone(pod, node, promise)
            self._not_bound(pod, node, error, started)
            return
        self._call("bind", self._bound(pod, waiting, node, promise, started, must_wait))

    async def _refuse(self, pod: Obj, waiting: Waiting, refused: Refused, started: float) -> None:
        row = waiting.pod
        now = self._clock.monotonic()
        self._queue.refused(row.uid, refused.rules, now)
        self._measures.attempted(UNSCHEDULED, now - started, row.scheduler)
        nominated, preemption = await self._make_room(pod, row, refused)
        why = message(refused, preemption)
        self._remember(row, refused, why)
        for plugin, _ in self._plugins[row.scheduler]:
            plugin.post_filter(pod, why)
        log.debug("pod cannot be scheduled", pod=row.key, why=why)
        self._events.record(reference(pod), "Warning", "FailedScheduling", why)
        self._say_not_scheduled(pod, UNSCHEDULABLE, why, nominated)

    # Preemption.

    async def _make_room(self, pod: Obj, row: PodRow, refused: Refused) -> tuple[str | None, str]:
        """The node that is being cleared (None: nothing changes; empty: none any more), and what
        there is to say about it."""
        profile = self._profiles[row.scheduler]
        if refused.unsupported or not refused.all_nodes or not profile.preempts:
            return None, ""
        if row.uid in self._evicting:
            return None, WAITING
        if why_not := not_eligible(row, self._nominations, self._cache):
            return None, why_not
        if refused.beforehand or not self._cache.any_below(row.priority):
            self._measures.preempted(0)
            self._nominations.remove(row.uid)
            return "", nobody_to_preempt(refused)
        budgets = tuple(self._budgets.values())
        asked = Preemptor(self._cache, profile, budgets, self._nominations)
        try:
            found = await self._found_victims(pod, row, asked)
        except ExtenderFailed as error:
            return None, f"{error}."
        if isinstance(found, Hopeless):
            self._measures.preempted(0)
            self._nominations.remove(row.uid)
            return "", not_preempted(refused.all_nodes, found.reasons)
        self._clear(row, found)
        return found.node, ""

    async def _found_victims(self, pod: Obj, row: PodRow, asked: Preemptor) -> Candidate | Hopeless:
        if not self._outside.weigh_victims_of(pod):
            return preempt(row, asked, self._rng)
        those = await self._outside.left_of(pod, candidates(row, asked, self._rng))
        if not those:
            return Hopeless(((NOT_HELPFUL, len(self._cache.columns)),))
        return best(those, self._rng)

    def _clear(self, row: PodRow, found: Candidate) -> None:
        self._measures.preempted(len(found.victims))
        log.info("room is made", pod=row.key, node=found.node, victims=len(found.victims))
        for one in self._nominations.on(found.node):
            if one.priority < row.priority:
                self._not_expected_any_more(one.uid)
        self._nominations.put(resident(row), found.node)
        self._evicting.add(row.uid)
        self._call("evict", self._evicted(row, found))

    def _not_expected_any_more(self, uid: str) -> None:
        self._nominations.remove(uid)
        pod = self._pods.get(uid)
        if pod is not None:
            self._call("status", self._status_written(pod, not_nominated(pod)))
            self._queue.activate(uid, self._clock.monotonic())

    async def _evicted(self, row: PodRow, found: Candidate) -> None:
        name = row.scheduler
        try:
            for victim in found.victims:
                if victim.terminating:
                    continue
                async with asyncio.timeout(CALL_SECONDS):
                    if await evict(self._client, victim, name, self._clock.now()):
                        tell(self._events, victim, row.uid, found.node)
        except (ApiError, OSError) as error:
            log.warning("room was not made", pod=row.key, node=found.node, error=error)
            # As upstream: there may be no event to wait for, so the pod tries again.
            self._queue.activate(row.uid, self._clock.monotonic())
            self._wake.set()
        finally:
            self._evicting.discard(row.uid)

    # Writing.

    async def _bound(
        self,
        pod: Obj,
        waiting: Waiting,
        node: str,
        promise: Promise,
        started: float,
        must_wait: bool,
    ) -> None:
        uid = waiting.pod.uid
        plugins = [plugin for plugin, _ in self._plugins[waiting.pod.scheduler]]
        try:
            if must_wait:
                async with self._not_a_call():
                    await self._permits.answered(uid)
            if promise.claims:
                await self._volumes_bound(promise, waiting.pod.scheduler)
            async with asyncio.timeout(CALL_SECONDS):
                for plugin in plugins:
                    await plugin.pre_bind(pod, node)
                await self._bound_by_somebody(plugins, pod, node)
        except (ApiError, OSError, VolumesNotBound, NotPermitted) as error:
            self._undone(pod, node, promise)
            self._not_bound(pod, node, error, started)
            return
        now = self._clock.monotonic()
        if uid in self._queue:  # else its confirmation was here before the answer
            self._unconfirmed[uid] = now + CONFIRM_SECONDS
        self._unqueue(uid)
        self._measures.attempted(SCHEDULED, now - started, waiting.pod.scheduler)
        self._measures.scheduled(waiting, now)
        log.info("pod bound", pod=waiting.pod.key, node=node, took_seconds=now - started)
        where = f"Successfully assigned {waiting.pod.key} to {node}"
        self._events.record(reference(pod), "Normal", "Scheduled", where)
        for plugin in plugins:
            await plugin.post_bind(pod, node)

    async def _bound_by_somebody(self, plugins: list[Plugin], pod: Obj, node: str) -> None:
        for plugin in plugins:
            if await plugin.bind(pod, node):
                return
        if not await self._outside.bound(pod, node):
            await bind(self._client, pod, node)

    async def _volumes_bound(self, promise: Promise, scheduler: str) -> None:
        async with asyncio.timeout(CALL_SECONDS):
            await self._binder.write(promise)
        async with self._not_a_call(), asyncio.timeout(self._profiles[scheduler].volume_seconds):
            await self._binder.bound(promise)

    @asynccontextmanager
    async def _not_a_call(self) -> AsyncIterator[None]:
        """Waiting takes nobody's turn."""
        self._calls -= 1
        self._wake.set()
        try:
            yield
        finally:
            self._calls += 1

    def _undone(self, pod: Obj, node: str, promise: Promise) -> None:
        self._binder.take_back(promise)
        for plugin, _ in reversed(self._plugins[scheduler_of(pod)]):
            plugin.unreserve(pod, node)

    def _not_bound(self, pod: Obj, node: str, error: Exception, started: float) -> None:
        uid = uid_of(pod)
        now = self._clock.monotonic()
        # As upstream: first the room is given back, then the pod may try again.
        self._happened(self._cache.forget(uid))
        if isinstance(error, NotPermitted):
            self._queue.refused(uid, frozenset({error.plugin}), now)
        else:
            self._queue.failed(uid, now)
        self._wake.set()
        result = UNSCHEDULED if isinstance(error, NotPermitted) else ERROR
        self._measures.attempted(result, now - started, scheduler_of(pod))
        if isinstance(error, Conflict | NotFound):
            # Somebody else bound it, or it is gone: the watch will say so.
            log.debug("pod was not bound", pod=key_of(pod), node=node, error=error)
            return
        log.warning("pod was not bound", pod=key_of(pod), node=node, error=error)
        why = f"running {_step_of(error)}: {error}"
        self._events.record(reference(pod), "Warning", "FailedScheduling", why)
        if isinstance(error, NotPermitted):
            self._say_not_scheduled(pod, UNSCHEDULABLE, why)

    # Remembering.

    def _remember(self, row: PodRow, decision: Decision, said: str = "") -> None:
        """In a crowd the details of those who found a place are left out: they cost more than the
        decision."""
        nodes, profile = self._cache.snapshot(), self._profiles[row.scheduler]
        refused: Mapping[str, tuple[str, ...]] = {}
        best_nodes: tuple[tuple[str, int, Mapping[str, int]], ...] = ()
        if isinstance(decision, Refused) or self._queue.count(Place.ACTIVE) < CROWD:
            refused = refusing(row, nodes, profile)
            best_nodes = best_of(row, nodes, profile)
        now = self._clock.now()
        self.records.put(Record(now, row, decision, refused, best_nodes, said))

    def why(self, namespace: str, name: str) -> Obj | None:
        """The last decision about a pod, and what would let it fit now; None: there is none."""
        record = self.records.get(f"{namespace}/{name}")
        if record is None:
            return None
        made = written(record)
        if isinstance(record.decision, Refused):
            row = record.pod
            those = changes(row.shape, self._cache.snapshot(), self._profiles[row.scheduler])
            made["changes"] = [{"change": one.text, "nodes": one.nodes} for one in those]
        return made

    def _say_not_scheduled(
        self, pod: Obj, reason: str, why: str, nominated: str | None = None
    ) -> None:
        patch = not_scheduled(pod, reason, why, self._clock.now(), nominated)
        if patch is not None:
            self._call("status", self._status_written(pod, patch))

    async def _status_written(self, pod: Obj, patch: Obj) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await write_status(self._client, pod, patch)
        except (ApiError, OSError) as error:
            # The pod is gone, or the API is: the next attempt says it again.
            log.debug("pod condition was not written", pod=key_of(pod), error=error)

    def _call(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._calls += 1
        self._tasks.start(name, self._counted(work))

    async def _counted(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        finally:
            if self._calls == MOST_CALLS:
                self._wake.set()
            self._calls -= 1


def _step_of(error: Exception) -> str:
    if isinstance(error, NotPermitted):
        return f"Permit plugin {error.plugin}"
    if isinstance(error, VolumesNotBound):
        return "PreBind plugin VolumeBinding"
    return "Bind plugin DefaultBinder"

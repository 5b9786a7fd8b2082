"""The scheduler: takes what the API says, decides, and has carried out what was decided.

Job: watch pods and nodes, keep queue and cache, decide one pod at a time.
Invariant: pods of another scheduler, or with a node, are never touched.
Invariant: with nothing to decide there is no timer but the queue's next one, and no work.
Owner: the process that runs it; one per identity and leader.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sampan.api.objects import Obj
from sampan.api.resources import (
    POD_DISRUPTION_BUDGETS,
)
from sampan.client.cache_sync import caches_of
from sampan.client.contract import Client
from sampan.client.events import EventRecorder
from sampan.client.informer import Informers
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.side_thread import SideThread
from sampan.core.tasks import Tasks
from sampan.scheduler.binding.api_call_limiter import Calls
from sampan.scheduler.binding.bind import FAILED, UNSCHEDULABLE
from sampan.scheduler.binding.bind_devices import elsewhere
from sampan.scheduler.binding.binding_cycle import Bindings
from sampan.scheduler.binding.cycle_parts import CycleParts
from sampan.scheduler.binding.permits import Permits
from sampan.scheduler.binding.reports import Reports
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.batch import Batches
from sampan.scheduler.decision.decide import Chosen, Decision, Refused
from sampan.scheduler.decision.decision_records import (
    Record,
    Records,
    best_of,
    record_object,
    refusing,
)
from sampan.scheduler.decision.leisure import Leisure
from sampan.scheduler.decision.nominated_pods import Nominator
from sampan.scheduler.decision.plugin_verdicts import Answer, ExtenderFailed, Extra
from sampan.scheduler.decision.rule_costs import RuleCosts
from sampan.scheduler.event_handlers import EventHandlers
from sampan.scheduler.extenders.extender_chain import Extenders
from sampan.scheduler.filters.dynamic_resources import DYNAMIC_RESOURCES, is_failure
from sampan.scheduler.intake import Intake
from sampan.scheduler.metrics import ERROR, LANE, UNSCHEDULED, Measures
from sampan.scheduler.model.pod_info import PodInfo, summary_of
from sampan.scheduler.preemption.preemption import Preemption
from sampan.scheduler.profile import DEFAULT_PROFILE, Profile
from sampan.scheduler.queue.alarm import Alarm
from sampan.scheduler.queue.pending import Pending
from sampan.scheduler.queue.queue_state import BACKOFF, Place, QueueState, Waiting, all_or_none
from sampan.scheduler.queue.queueing_hints import Hints
from sampan.scheduler.why.changes import changes
from sampan.scheduler.why.explain import CLAIM_DEALLOCATED, NO_CLAIMS, STILL_NOT, message

if TYPE_CHECKING:  # loaded where a configuration asks for one
    from sampan.scheduler.extenders.extender import Extender

MOST_EVENTS = 20_000  # that wait to be written; a burst of pods is bound faster than told of
DECISIONS_PER_TURN = 16  # then others of the event loop have theirs
MOST_TERMS = 500  # of pods that are there, that a decision on the loop looks at

log = get_logger(__name__)
T = TypeVar("T")


class Scheduler:
    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        profiles: Sequence[Profile] = (DEFAULT_PROFILE,),
        extenders: "Sequence[Extender]" = (),
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._client, self._clock, self._rng = client, clock, rng
        self._profiles = {profile.scheduler_name: profile for profile in profiles}
        self._metrics, self._backoff = metrics, backoff
        self._outside = Extenders(extenders)
        self._begin()

    def _begin(self) -> None:
        """Everything that is known comes from the API, so a new run starts with nothing."""
        client, clock = self._client, self._clock
        self._tasks = Tasks("scheduler")
        self._side = SideThread("scheduler")
        self._intake = Intake(self._side, self._tasks)
        self._wake = asyncio.Event()
        self._alarm = Alarm(clock, self._tasks, self._wake.set)
        self._calls = Calls(self._tasks, self._wake.set)
        self._cache = CacheState()
        columns = self._cache.columns
        self._batches = {
            name: Batches(columns, profile) for name, profile in self._profiles.items()
        }
        self.records = Records()
        self._leisure = Leisure()
        self._detailed = False  # the decision that is being made
        [first, *others] = self._profiles.values()
        nominator = Nominator()
        hints = Hints(self._cache, nominator, first)
        # With several profiles, a rule may mean one thing here and another there.
        self._queue = QueueState(all_or_none if others else hints.helped, self._backoff)
        self._pending = Pending(self._queue, nominator, self._cache, clock, self._wake.set)
        self._permits = Permits(self._cache, lambda uid: self._handlers.reconsider(uid))
        self._plugins = {
            name: [(made(args, self._permits), weight) for made, args, weight in profile.plugins]
            for name, profile in self._profiles.items()
        }
        self._measures = Measures(self._metrics, self._queue, self._cache)
        self._events = EventRecorder(
            client, first.scheduler_name, clock=clock, rng=self._rng, bound=MOST_EVENTS
        )
        self._reports = Reports(client, clock, self._events, self._calls)
        parts = CycleParts(
            client, clock, self._cache, self._pending, self._reports, self._measures, self._calls,
            self._outside, self._intake,
        )  # fmt: skip
        self._preemption = Preemption(parts, self._rng)
        self._bindings = Bindings(parts, self._profiles, self._plugins, self._permits)
        self._handlers = EventHandlers(parts, self._bindings, self._profiles, self._plugins)

    async def run(self) -> None:
        """Until cancelled; may be run again after a failure."""
        self._begin()
        informers = Informers(self._client, clock=self._clock, rng=self._rng)
        self._metrics.memory.add("informers of the scheduler", lambda: [informers])
        try:
            needed = self._handlers.follow(informers)
            self._preemption.follow_budgets(informers.of(POD_DISRUPTION_BUDGETS))
            informers.start()
            # Who uses what the API does not show is not scheduled; everybody else is.
            await caches_of("kube-scheduler", needed, informers.all())
            await self._intake.settled()
            self._tasks.supervise("events", self._events.run)
            await self._schedule()
        finally:
            await informers.stop()
            await self._tasks.stop()
            self._side.close()

    # Deciding.

    async def _schedule(self) -> None:
        while True:
            for _ in range(DECISIONS_PER_TURN):
                if self._calls.full or not await self._attempt():
                    break
            if not self._calls.full and self._queue.has_next():
                await asyncio.sleep(0)
                continue
            self._alarm.set(self._next_alarm())
            await self._wake.wait()
            self._wake.clear()
            self._queue.flush(self._clock.monotonic())
            self._bindings.expire()

    def _next_alarm(self) -> float | None:
        moments = (self._queue.next_flush(), self._bindings.next_expiry())
        return min((moment for moment in moments if moment is not None), default=None)

    async def _attempt(self) -> bool:
        """One pod; False where there is none to try."""
        started = self._clock.monotonic()
        waiting = self._queue.pop(started)
        if waiting is None:
            return False
        row, pod = waiting.pod, self._pending.objects[waiting.pod.uid]
        try:
            async with self._intake.turn:
                await self._attempted(waiting, pod, started)
        except ExtenderFailed as error:
            self._not_decided(pod, row, str(error), started)
        except Exception as error:
            # Whatever a pod brings to light keeps no other pod from being scheduled.
            log.bug("scheduling failed", error, pod=row.key)
            self._not_decided(pod, row, f"{type(error).__name__}: {error}", started)
        return True

    async def _attempted(self, waiting: Waiting, pod: Obj, started: float) -> None:
        row = waiting.pod
        if row.shape.devices and self._waits_for_claims(row, started):
            return
        waiting_too = self._queue.count(Place.ACTIVE)
        self._detailed = self._leisure.take(waiting_too, started)
        costs = self._measured(row)
        decision = await self._decide(pod, row)
        self._measures.decided(waiting, decision, self._clock.monotonic() - started, costs)
        if row.uid not in self._queue:
            return  # gone, or placed by others, while an extender was asked
        match decision:
            case Chosen(node):
                await self._remember(row, decision)
                await self._bindings.place(pod, waiting, node, started)
            case Refused():
                if failure := _claim_failure(decision):
                    self._not_decided(pod, row, failure, started)
                else:
                    await self._refuse(pod, waiting, decision, started)

    def _waits_for_claims(self, row: PodInfo, now: float) -> bool:
        """As upstream's PreEnqueue: a pod whose claims are not there is not tried, and nothing is
        said of it; `sampan why` knows."""
        why = self._cache.columns.devices.not_there(row.shape.devices)
        if why is None:
            return False
        name = DYNAMIC_RESOURCES.name
        self._queue.refused(row.uid, frozenset({name}), now)
        refused = Refused(len(self._cache.columns), (), beforehand=why, beforehand_rule=name)
        self.records.put(self._record(row, refused, message(refused)))
        return True

    def _measured(self, row: PodInfo) -> RuleCosts | None:
        is_wanted = self._detailed and self._measures.traces.is_on
        costs = RuleCosts(self._clock) if is_wanted else None
        self._batches[row.scheduler].costs = costs
        return costs

    async def _decide(self, pod: Obj, row: PodInfo) -> Decision:
        plugins = self._plugins[row.scheduler]
        if row.shape.devices:
            await self._search_devices(row)
        answers: list[Answer] = []
        for plugin, _ in plugins:
            why = plugin.pre_filter(pod)
            if why is not None:
                count = len(self._cache.columns)
                return Refused(count, (), beforehand=why, beforehand_rule=plugin.name)
        batches = self._batches[row.scheduler]
        if self._outside.concern(pod):
            feasible = batches.feasible(row.shape)
            known = self._handlers.nodes
            nodes = [known[name] for name in feasible if name in known]
            answers = await self._outside.answers(pod, nodes)
        nominator = self._pending.nominator
        expected = nominator.for_others(row.uid, row.priority)
        first = nominator.node_of(row.uid)
        extra = Extra(pod, plugins, answers) if plugins or answers else None
        decide = partial(batches.decide, row.shape, self._rng, expected, first, extra)
        return await self._worked_out(row, decide)

    async def _worked_out(self, row: PodInfo, work: Callable[[], T]) -> T:
        """On the loop, unless the pod, or what others say of its like, is long."""
        others = self._cache.snapshot().carried(row.shape.namespace)
        if row.shape.is_long or len(others) > MOST_TERMS:
            return await self._intake.alone(work)
        return work()

    async def _search_devices(self, row: PodInfo) -> None:
        """Expressions of claims may take long: then they are not asked on the loop."""
        nodes, needs = self._cache.snapshot(), row.shape.devices
        if nodes.devices.beforehand(needs, nodes.namespaces) is not None:
            return  # nothing is asked of devices
        if not nodes.devices.search_at_once(needs, nodes):
            await self._side.run(nodes.devices.search(needs, nodes))

    def _not_decided(self, pod: Obj, row: PodInfo, why: str, started: float) -> None:
        now = self._clock.monotonic()
        self._queue.failed(row.uid, now)
        self._measures.attempted(ERROR, now - started, row.scheduler)
        log.warning("scheduling attempt failed with an error", pod=row.key, error=why)
        self._reports.failed(pod, why)
        self._reports.not_scheduled(pod, FAILED, why)

    async def _refuse(self, pod: Obj, waiting: Waiting, refused: Refused, started: float) -> None:
        row = waiting.pod
        now = self._clock.monotonic()
        self._queue.refused(row.uid, refused.rules, now)
        self._measures.attempted(UNSCHEDULED, now - started, row.scheduler)
        profile = self._profiles[row.scheduler]
        works = partial(self._worked_out, row)
        nominated, preemption = await self._preemption.make_room(pod, row, refused, profile, works)
        if nominated:
            took = self._clock.monotonic() - now
            self._measures.traces.span_for(row.uid, LANE, "preemption", took, node=nominated)
        why = message(refused, preemption, self._deallocate(row, refused))
        await self._remember(row, refused, why)
        for plugin, _ in self._plugins[row.scheduler]:
            named = plugin.post_filter(pod, why)
            if named and not nominated and self._preemption.nominate(row, named):
                nominated = named
        log.debug("pod cannot be scheduled", pod=row.key, why=why)
        self._reports.failed(pod, why)
        self._reports.not_scheduled(pod, UNSCHEDULABLE, why, nominated)

    def _deallocate(self, row: PodInfo, refused: Refused) -> str:
        """As upstream's PostFilter: a claim that only this pod has, and has in the wrong place, is
        given up so that it can be allocated anew."""
        if not row.shape.devices or refused.beforehand:
            return NO_CLAIMS
        claim = elsewhere(row, self._cache.snapshot())
        if claim is None:
            return STILL_NOT
        self._calls.start("deallocate", self._bindings.deallocate(claim))
        return CLAIM_DEALLOCATED

    # Remembering.

    async def _remember(self, row: PodInfo, decision: Decision, said: str = "") -> None:
        record = await self._worked_out(row, partial(self._record, row, decision, said))
        self.records.put(record)

    def _record(self, row: PodInfo, decision: Decision, said: str) -> Record:
        """In a hurry the details of those who found a place are left out."""
        nodes, profile = self._cache.snapshot(), self._profiles[row.scheduler]
        refused: Mapping[str, tuple[str, ...]] = {}
        best_nodes: tuple[tuple[str, int, Mapping[str, int]], ...] = ()
        if self._detailed or isinstance(decision, Refused):
            refused = refusing(row, nodes, profile)
        if self._detailed:
            best_nodes = best_of(row, nodes, profile)
        kept = summary_of(row) if row.shape.is_long else row
        return Record(self._clock.now(), kept, decision, refused, best_nodes, said)

    def why(self, namespace: str, name: str) -> Obj | None:
        """The last decision about a pod, and what would let it fit now; None: there is none."""
        record = self.records.get(f"{namespace}/{name}")
        if record is None:
            return None
        made = record_object(record)
        row = record.pod
        if isinstance(record.decision, Refused) and self._intake.is_free and not row.shape.is_long:
            those = changes(row.shape, self._cache.snapshot(), self._profiles[row.scheduler])
            made["changes"] = [{"change": item.text, "nodes": item.nodes} for item in those]
        return made


def _claim_failure(refused: Refused) -> str:
    for refusal in refused.refusals:
        if refusal.rule == DYNAMIC_RESOURCES.name:
            for reason, _ in refusal.reasons:
                if is_failure(reason):
                    return f'running "{refusal.rule}" filter plugin: {reason}'
    return ""

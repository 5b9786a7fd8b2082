"""The scheduler: takes what the API says, decides, and has carried out what was decided.

Job: watch pods and nodes, keep queue and cache, decide one pod at a time.
Invariant: pods of another scheduler, or with a node, are never touched.
Invariant: with nothing to decide there is no timer but the queue's next one, and no work.
Owner: the process that runs it; one per identity and leader.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of, uid_of
from sampan.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from sampan.api.rules.pods import is_terminal, node_name
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
from sampan.scheduler.binding.bind import GATED, GATED_MESSAGE, UNSCHEDULABLE
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
from sampan.scheduler.decision.nominated_pods import Nominations
from sampan.scheduler.decision.plugin_verdicts import Answer, ExtenderFailed, Extra
from sampan.scheduler.decision.rule_costs import RuleCosts
from sampan.scheduler.extenders.extender_chain import Extenders
from sampan.scheduler.metrics import ERROR, LANE, UNSCHEDULED, Measures
from sampan.scheduler.model.assigned_pod import assigned_pod_after, assigned_pod_of
from sampan.scheduler.model.cluster_events import DevicesChanged, StorageChanged
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import PodInfo, pod_info_of, scheduler_of, without
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

log = get_logger(__name__)

Put = Callable[[str, Obj | None], None]  # an object's key and what it is now; None: it is gone
Changed = Callable[[Obj | None, Obj | None], None]


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
        self._side = SideThread("devices")
        self._wake = asyncio.Event()
        self._alarm = Alarm(clock, self._tasks, self._wake.set)
        self._calls = Calls(self._tasks, self._wake.set)
        self._cache = CacheState()
        columns = self._cache.columns
        self._batches = {
            name: Batches(columns, profile) for name, profile in self._profiles.items()
        }
        self._nodes: dict[str, Obj] = {}  # as objects, for extenders
        self.records = Records()
        self._leisure = Leisure()
        self._detailed = False  # the decision that is being made
        [first, *others] = self._profiles.values()
        nominations = Nominations()
        hints = Hints(self._cache, nominations, first)
        # With several profiles, a rule may mean one thing here and another there.
        self._queue = QueueState(all_or_none if others else hints.helped, self._backoff)
        self._pending = Pending(self._queue, nominations, self._cache, clock, self._wake.set)
        self._permits = Permits(self._cache, self._reconsider)
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
            self._outside,
        )  # fmt: skip
        self._preemption = Preemption(parts, self._rng)
        self._bindings = Bindings(parts, self._profiles, self._plugins, self._permits)

    async def run(self) -> None:
        """Until cancelled; may be run again after a failure."""
        self._begin()
        informers = Informers(self._client, clock=self._clock, rng=self._rng)
        self._metrics.memory.add("informers of the scheduler", lambda: [informers])
        try:
            needed = [informers.of(resource) for resource in (NAMESPACES, NODES, PODS)]
            for informer, changed in zip(
                needed, (self.namespace_changed, self.node_changed, self.pod_changed), strict=True
            ):
                informer.on_change(changed)
            self._preemption.follow_budgets(informers.of(POD_DISRUPTION_BUDGETS))
            self._watch_storage(informers)
            self._watch_workloads(informers)
            self._watch_devices(informers)
            informers.start()
            # Who uses what the API does not show is not scheduled; everybody else is.
            await caches_of("kube-scheduler", needed, informers.all())
            self._tasks.supervise("events", self._events.run)
            await self._schedule()
        finally:
            await informers.stop()
            await self._tasks.stop()
            self._side.close()

    # What the API says.

    def _watch_storage(self, informers: Informers) -> None:
        volumes = self._cache.columns.volumes
        for resource, put in (
            (PERSISTENT_VOLUME_CLAIMS, volumes.put_claim),
            (PERSISTENT_VOLUMES, volumes.put_volume),
            (STORAGE_CLASSES, volumes.put_class),
            (CSI_NODES, volumes.put_limits),
            (CSI_DRIVERS, volumes.put_driver),
            (CSI_STORAGE_CAPACITIES, volumes.put_capacity),
        ):
            informers.of(resource).on_change(self._storage_changes(put))

    def _watch_workloads(self, informers: Informers) -> None:
        """They change where a pod would rather go, not whether it can: no pod is called back."""
        workloads = self._cache.columns.workloads
        informers.of(SERVICES).on_change(_change_listener(workloads.put_service))
        for resource in (REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS):
            put = partial(workloads.put_controller, resource.kind)
            informers.of(resource).on_change(_change_listener(put))

    def _watch_devices(self, informers: Informers) -> None:
        allocation = self._cache.columns.devices
        for resource, put in (
            (RESOURCE_SLICES, allocation.put_slice),
            (DEVICE_CLASSES, allocation.devices.put_class),
            (RESOURCE_CLAIMS, allocation.devices.put_claim),
        ):
            informers.of(resource).on_change(self._device_changes(put))

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if self._outside:
                self._nodes[name_of(new)] = new
            self._pending.happened(self._cache.put_node(node_info_of(new)))
        elif old is not None:
            self._nodes.pop(name_of(old), None)
            self._pending.happened(self._cache.remove_node(name_of(old)))

    def namespace_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if old is None or labels_of(old) != labels_of(new):
                self._pending.happened(self._cache.put_namespace(name_of(new), labels_of(new)))
        elif old is not None:
            self._pending.happened(self._cache.put_namespace(name_of(old), None))

    def _storage_changes(self, put: Put) -> Changed:
        def put_and_tell(key: str, written: Obj | None) -> None:
            put(key, written)
            self._cache.columns.changed_beside()
            self._bindings.volumes.changed()
            self._pending.happened(StorageChanged(key))

        return _change_listener(put_and_tell)

    def _device_changes(self, put: Put) -> Changed:
        def put_and_tell(key: str, written: Obj | None) -> None:
            put(key, written)
            self._cache.columns.changed_beside()
            self._pending.happened(DevicesChanged(key))

        return _change_listener(put_and_tell)

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._pod_gone(uid_of(old))
        if new is None:
            return
        if is_terminal(new):
            self._pod_gone(uid_of(new))
        elif node := node_name(new):
            uid = uid_of(new)
            self._pending.remove(uid)
            self._bindings.confirmed(uid)
            before = self._cache.pod(uid) if old is not None else None
            made = (
                assigned_pod_of(new)
                if old is None or before is None
                else assigned_pod_after(before, old, new)
            )
            for event in self._cache.put_pod(uid, node, made):
                self._pending.happened(event)
        elif scheduler_of(new) in self._profiles:
            self._pod_waits(new)

    def _pod_gone(self, uid: str) -> None:
        self._bindings.confirmed(uid)
        self._pending.withdraw(uid)
        self._pending.happened(self._cache.remove_pod(uid))

    def _pod_waits(self, pod: Obj) -> None:
        uid = uid_of(pod)
        if is_deleted(pod):
            self._pending.withdraw(uid)
            return
        if uid not in self._queue and self._cache.node_of(uid) is not None:
            return  # bound by us, and this is from before: the confirmation is on its way
        self._pending.put(self._row(pod), pod)
        waiting = self._queue.get(uid)
        if waiting is not None and set(waiting.pod.gates) - {waiting.pod.shape.devices.problem}:
            self._reports.not_scheduled(pod, GATED, GATED_MESSAGE)

    def _row(self, pod: Obj) -> PodInfo:
        """With what the plugins say of its turn."""
        row = pod_info_of(pod)
        if row.shape.devices.problem:
            # As upstream's PreEnqueue: until its claims are made, it is not even tried.
            row = replace(row, gates=(*row.gates, row.shape.devices.problem))
        for plugin, _ in self._plugins[row.scheduler]:
            held = plugin.pre_enqueue(pod)
            if held is not None:
                row = replace(row, gates=(*row.gates, f"{plugin.name}: {held}"))
            order = plugin.sort_key(pod)
            if order is not None:
                row = replace(row, order=order)
        profile = self._profiles[row.scheduler]
        if not self._outside.resources and not profile.ignores_some:
            return row
        requested = (name for name, _ in row.shape.usage.requests)
        return without(
            row,
            {
                item
                for item in requested
                if item in self._outside.resources or profile.ignores(item)
            },
        )

    def _reconsider(self, uid: str) -> None:
        pod = self._pending.objects.get(uid)
        if pod is not None:
            self._pending.put(self._row(pod), pod)
            self._pending.activate(uid)

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
        row = waiting.pod
        pod = self._pending.objects[row.uid]
        waiting_too = self._queue.count(Place.ACTIVE)
        self._detailed = self._leisure.take(waiting_too, started)
        costs = self._measured(row)
        try:
            decision = await self._decide(pod, row)
        except ExtenderFailed as error:
            self._not_decided(pod, row, error, started)
            return True
        self._measures.decided(waiting, decision, self._clock.monotonic() - started, costs)
        if row.uid not in self._queue:
            return True  # gone, or placed by others, while an extender was asked
        match decision:
            case Chosen(node):
                self._remember(row, decision)
                self._bindings.place(pod, waiting, node, started)
            case Refused():
                await self._refuse(pod, waiting, decision, started)
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
            nodes = [self._nodes[name] for name in feasible if name in self._nodes]
            answers = await self._outside.answers(pod, nodes)
        nominations = self._pending.nominations
        expected = nominations.for_others(row.uid, row.priority)
        first = nominations.node_of(row.uid)
        extra = Extra(pod, plugins, answers) if plugins or answers else None
        return batches.decide(row.shape, self._rng, expected, first, extra)

    async def _search_devices(self, row: PodInfo) -> None:
        """Expressions of claims may take long: then they are not asked on the loop."""
        nodes, needs = self._cache.snapshot(), row.shape.devices
        if nodes.devices.beforehand(needs, nodes.namespaces) is not None:
            return  # nothing is asked of devices
        if not nodes.devices.search_at_once(needs, nodes):
            await self._side.run(nodes.devices.search(needs, nodes))

    def _not_decided(self, pod: Obj, row: PodInfo, error: Exception, started: float) -> None:
        now = self._clock.monotonic()
        self._queue.failed(row.uid, now)
        self._measures.attempted(ERROR, now - started, row.scheduler)
        log.warning("no decision", pod=row.key, error=error)
        self._reports.failed(pod, str(error))
        self._reports.not_scheduled(pod, "SchedulerError", str(error))

    async def _refuse(self, pod: Obj, waiting: Waiting, refused: Refused, started: float) -> None:
        row = waiting.pod
        now = self._clock.monotonic()
        self._queue.refused(row.uid, refused.rules, now)
        self._measures.attempted(UNSCHEDULED, now - started, row.scheduler)
        profile = self._profiles[row.scheduler]
        nominated, preemption = await self._preemption.make_room(pod, row, refused, profile)
        if nominated:
            took = self._clock.monotonic() - now
            self._measures.traces.span_for(row.uid, LANE, "preemption", took, node=nominated)
        why = message(refused, preemption, self._deallocate(row, refused))
        self._remember(row, refused, why)
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

    def _remember(self, row: PodInfo, decision: Decision, said: str = "") -> None:
        """In a hurry the details of those who found a place are left out."""
        nodes, profile = self._cache.snapshot(), self._profiles[row.scheduler]
        refused: Mapping[str, tuple[str, ...]] = {}
        best_nodes: tuple[tuple[str, int, Mapping[str, int]], ...] = ()
        if self._detailed or isinstance(decision, Refused):
            refused = refusing(row, nodes, profile)
        if self._detailed:
            best_nodes = best_of(row, nodes, profile)
        now = self._clock.now()
        self.records.put(Record(now, row, decision, refused, best_nodes, said))

    def why(self, namespace: str, name: str) -> Obj | None:
        """The last decision about a pod, and what would let it fit now; None: there is none."""
        record = self.records.get(f"{namespace}/{name}")
        if record is None:
            return None
        made = record_object(record)
        if isinstance(record.decision, Refused):
            row = record.pod
            those = changes(row.shape, self._cache.snapshot(), self._profiles[row.scheduler])
            made["changes"] = [{"change": item.text, "nodes": item.nodes} for item in those]
        return made


def _change_listener(put: Put) -> Changed:
    def changed(old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        put(key_of(obj), new)

    return changed

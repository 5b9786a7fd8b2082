"""The steps of one pod: sync it, terminate it, clean up after it.

Job: observe → report → plan → perform → report, in that order and re-entrant; the way down
    likewise. Expected failures become an Outcome that is tried again.
Invariant: a step that is cancelled anywhere leaves nothing that the next step does not see.
Owner: PodWorkers calls it, one step at a time per pod.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from sampan.api.errors import ApiError
from sampan.api.features import enabled
from sampan.api.objects import (
    Obj,
    is_deleted,
    key_of,
    name_of,
    namespace_of,
    seconds_of,
    spec_of,
    uid_of,
)
from sampan.api.rules.node_agent.restart_rules import may_restart_all
from sampan.api.rules.pods import is_host_network, is_static, is_terminal
from sampan.core.fast_dataclass import replace
from sampan.core.log import get_logger
from sampan.core.tasks import all_of, give_way
from sampan.kubelet.cgroups.cgroup_thread import CgroupThread
from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure
from sampan.kubelet.container_spec import bandwidth
from sampan.kubelet.container_spec.name_resolution import missing_cluster_dns
from sampan.kubelet.context import LANE, NodeContext
from sampan.kubelet.contracts.paths import pod_directory
from sampan.kubelet.contracts.probes_hook import Probes
from sampan.kubelet.contracts.resources_hook import ClaimFailure, PodRefused
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ObservedPod,
    RuntimeFailure,
    RuntimeUnavailable,
)
from sampan.kubelet.contracts.spec import is_long
from sampan.kubelet.contracts.verdict import Verdict, Waiting
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.pods import garbage
from sampan.kubelet.pods.parts import PodState, PodTools
from sampan.kubelet.pods.perform import Performer
from sampan.kubelet.pods.plan import plan
from sampan.kubelet.pods.planning.actions import Action, HoldBack
from sampan.kubelet.pods.planning.crash_backoff import with_longest
from sampan.kubelet.pods.planning.restart_all_containers import resets
from sampan.kubelet.pods.planning.starts import Restarts
from sampan.kubelet.pods.pod_state import Cause, Phase
from sampan.kubelet.pods.pod_workers import Job, Outcome
from sampan.kubelet.pods.resize_progress import ResizeProgress
from sampan.kubelet.pods.run_spans import RunSpans
from sampan.kubelet.runtime.pleg import RuntimeHealth
from sampan.kubelet.status import restart_all_containers
from sampan.kubelet.status.pod_status import (
    OWNED,
    Facts,
    finished_status,
    has_ended,
    held_back,
    pod_status,
    rejected_status,
)
from sampan.kubelet.status.resource_health import with_resource_health
from sampan.kubelet.status.termination_message import awaits_log, with_messages

log = get_logger(__name__)

# Each round makes progress (one more sidecar started, say); the bound only ends a bug.
ROUNDS = 50
# A runtime announces an end before the log is whole: an end is told with its last word.
LOG_PAUSES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
# A container that is just ending by itself cannot be killed: that is tried again before it counts.
STOP_PAUSES = (0.05, 0.2)
# As upstream, which kills five times: a process that was just being made is not in the list yet.
CGROUP_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
_NEVER: Mapping[str, int] = MappingProxyType({})
OVERDUE = Verdict(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


class PodSync:
    def __init__(
        self,
        context: NodeContext,
        tools: PodTools,
        records: PodState,
        *,
        performer: Callable[[], Performer],
        probes: Probes,
        health: RuntimeHealth,
    ) -> None:
        self._settings, self._runtime, self._clock = (
            context.settings, context.runtime, context.clock
        )  # fmt: skip
        self._killer, self._volumes, self._events = tools.killer, tools.volumes, tools.events
        self._cgroups, self._allocations = tools.cgroups, records.allocations
        self._logs = tools.logs
        self._resources = tools.resources
        self._observations, self._status_manager = records.observations, records.status_manager
        self._mirrors, self._health = records.mirrors, health
        self._performer, self._at_once, self._probes = performer, tools.at_once, probes
        self._backoff = with_longest(context.settings.crash_backoff_seconds)
        self._resizes = ResizeProgress(records.allocations, tools.events)
        metrics = context.metrics
        self._traces, self._runs = metrics.traces, RunSpans(metrics.traces)
        self._start_seconds = metrics.histogram(
            "kubelet_pod_start_duration_seconds",
            "Duration in seconds from kubelet seeing a pod for the first time to the pod starting "
            "to run",
            buckets=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
        )
        self._containers_per_pod = metrics.histogram(
            "kubelet_containers_per_pod_count",
            "The number of containers per pod.",
            buckets=(1, 2, 4, 8, 16),
        )

    async def sync(self, job: Job) -> Outcome:
        try:
            # It runs with what it was given, whatever it asks for by now.
            pod = self._allocations.applied(job.pod)
            return await self._sync(job if pod is job.pod else replace(job, pod=pod))
        except (RuntimeFailure, ApiError) as error:
            return self._failed("pod was not synced, trying again", job, error)

    async def terminate(self, job: Job) -> Outcome:
        try:
            await self._terminate(job)
        except RuntimeFailure as error:
            self._events.warning(job.pod, "FailedKillPod", f"error killing pod: {error}")
            return self._failed("pod was not stopped, trying again", job, error)
        except ClaimFailure as error:
            return self._failed("claims were not given back, trying again", job, error)
        return Outcome()

    async def clean_up(self, job: Job) -> Outcome:
        pod, uid = job.pod, uid_of(job.pod)
        try:
            await self._timed(uid, "remove volumes", self._volumes.clean_up(uid))
            if self._cgroups is not None:
                removal = self._remove_cgroups(self._cgroups, uid)
                await self._timed(uid, "remove cgroups", removal)
            if not job.gone:
                await self._remove_unstarted(uid)
            if job.gone:
                self._probes.forget(uid)  # its figures go before anybody hears that it is gone
            if job.known:
                self._report_end(job)
            if job.known and is_deleted(pod):
                self._status_manager.delete(pod)
            if job.gone:
                await self._timed(uid, "remove containers and sandbox", self._remove_remains(uid))
                self._runs.forget(uid)
                if is_static(pod):
                    self._mirrors.unwant(pod)
        except (RuntimeFailure, VolumeFailure, CgroupFailure) as error:
            self._events.warning(pod, "FailedKillPod", f"error cleaning up pod: {error}")
            return self._failed("pod was not cleaned up, trying again", job, error)
        return Outcome()

    async def _timed(self, uid: str, step: str, work: Awaitable[None]) -> None:
        await self._traces.timed(uid, LANE, step, work)

    async def _remove_cgroups(self, cgroups: CgroupThread, uid: str) -> None:
        """The containers are gone: whatever is still in the pod's cgroups was left by a start that
        did not come to its end, and is killed."""
        for seconds in CGROUP_PAUSES:
            try:
                await cgroups.remove(uid)
                return
            except CgroupFailure:
                killed = await cgroups.kill(uid)
                log.info("killed processes left in the pod cgroup", uid=uid, processes=killed)
                await self._clock.sleep(seconds)
        await cgroups.remove(uid)

    async def _remove_unstarted(self, uid: str) -> None:
        """A container that was created and never started has no end to show."""
        observed = await self._observations.pod(uid)
        for container in observed.containers if observed is not None else ():
            if container.state is ContainerState.CREATED:
                await self._remove(container.id)

    def _failed(self, sentence: str, job: Job, error: Exception) -> Outcome:
        log.warning(sentence, pod=key_of(job.pod), error=error)
        return Outcome(failed=True)

    async def _sync(self, job: Job) -> Outcome:
        pod, uid = job.pod, uid_of(job.pod)
        waiting = dict(job.waiting)
        if job.first:
            self._warn_of_bandwidth(pod)
            self._warn_of_dns(pod)
            self._containers_per_pod.observe(len(spec_of(pod).get("containers") or ()))
        if is_static(pod):
            self._mirrors.want(pod)
        observed = await self._look_first(job)
        refused = await self._refused_resources(pod, observed)
        if refused is not None:
            return self._rejected(pod, refused, waiting)
        actions: Sequence[Action] = ()
        for _ in range(ROUNDS):
            await self._between(pod)
            self._runs.note(uid, observed)
            now = self._clock.now()
            self._probes.follow(pod, observed)
            await self._between(pod)
            status = self._report(job, observed, waiting)
            if has_ended(pod, status):
                return Outcome(terminal=True, waiting=waiting)
            if self._is_overdue(pod, status, now):
                return Outcome(verdict=self._overdue(job, observed, waiting), waiting=waiting)
            await self._between(pod)
            actions = self._planned(pod, observed, status, now)
            if self._resizes.completes(pod, actions):
                self._report(job, observed, waiting)
            if not actions:
                break
            log.debug("pod actions computed", pod=key_of(pod), uid=uid, actions=actions)
            if not self._network_is_ready(pod):
                return Outcome(failed=True, waiting=waiting)
            await self._allocations.stored()
            applied = self._resizes.applied(uid)
            done = await self._performer().perform(pod, actions, observed, applied)
            waiting |= done.waiting
            if done.verdict is not None:
                return self._rejected(pod, done.verdict, waiting)
            self._resizes.note(pod, done.resized)
            for name in done.started:
                waiting.pop(name, None)
            if all(isinstance(action, HoldBack) for action in actions):
                await asyncio.sleep(0)  # that it ended is being written: the back-off comes after
                self._report(job, observed, waiting)
                break
            observed = await self._observe(pod)
            if done.failed:
                self._report(job, observed, waiting)
                return Outcome(failed=True, waiting=waiting)
        await self._refresh_volumes(pod)
        await self._discard(observed)
        return Outcome(waiting=waiting, wake_after=self._wake_after(pod, actions))

    def _planned(
        self, pod: Obj, observed: ObservedPod | None, status: Obj, now: float
    ) -> Sequence[Action]:
        if restart_all_containers.is_under_way(status):
            return resets(pod, observed)
        uid = uid_of(pod)
        self._resizes.begins(pod, new=observed is None or not observed.containers)
        restarts = Restarts(self._backoff, _restarts(pod, status))
        checks, applied = self._probes.checks(uid), self._resizes.applied(uid)
        return plan(pod, observed, now, checks, applied, restarts)

    async def _between(self, pod: Obj) -> None:
        """Two looks at the whole pod."""
        if is_long(pod):
            await give_way()

    async def _look_first(self, job: Job) -> ObservedPod | None:
        """What there is of the pod; all of it, where it can start at once."""
        is_new = job.first and self._observations.never_had(uid_of(job.pod))
        can_start = is_new and self._health.network_ready and self._resources is None
        if is_new and not (can_start and self._at_once.start(job.pod)):
            return None
        return await self._observe(job.pod)

    def _warn_of_bandwidth(self, pod: Obj) -> None:
        warning = bandwidth.warning_of(pod, shaped=self._settings.shapes_bandwidth)
        if warning is not None:
            self._events.warning(pod, *warning)

    def _warn_of_dns(self, pod: Obj) -> None:
        if self._settings.simulated:
            return
        missing = missing_cluster_dns(pod, self._settings.cluster_dns)
        if missing:
            full = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
            self._events.warning(pod, "MissingClusterDNS", f'pod: "{full}". {missing}')

    async def _refused_resources(self, pod: Obj, observed: ObservedPod | None) -> Verdict | None:
        """Devices and the like are given to it before anything of it starts; or not."""
        resources = self._resources
        if resources is None or not resources.awaits(pod):
            return None
        there = observed.containers if observed is not None else ()
        if any(container.state is ContainerState.RUNNING for container in there):
            resources.goes_on(pod)
            return None
        try:
            await self._traces.timed(uid_of(pod), LANE, "devices", resources.admit(pod))
        except PodRefused as refused:
            return refused.verdict
        return None

    def _rejected(self, pod: Obj, verdict: Verdict, waiting: Mapping[str, Waiting]) -> Outcome:
        """What was found out only when it was to be started. Nothing of it runs."""
        self._events.warning(
            pod, verdict.reason, verdict.message.removeprefix("Pod was rejected: ")
        )
        return Outcome(verdict=verdict, cause=Cause.REJECTED, waiting=waiting)

    async def _refresh_volumes(self, pod: Obj) -> None:
        try:
            await self._volumes.refresh(pod)
        except VolumeFailure as error:
            if error.reason:
                self._events.warning(pod, error.reason, str(error))

    def _network_is_ready(self, pod: Obj) -> bool:
        if is_host_network(pod) or self._health.network_ready:
            return True
        self._events.warning(
            pod, "NetworkNotReady", f"network is not ready: {self._health.message}"
        )
        return False

    def _overdue(
        self, job: Job, observed: ObservedPod | None, waiting: Mapping[str, Waiting]
    ) -> Verdict:
        self._events.normal(job.pod, OVERDUE.reason, OVERDUE.message)
        self._report(replace(job, verdict=OVERDUE), observed, waiting)
        return OVERDUE

    def _is_overdue(self, pod: Obj, status: Obj, now: float) -> bool:
        deadline = spec_of(pod).get("activeDeadlineSeconds")
        return deadline is not None and now >= seconds_of(status["startTime"]) + float(deadline)

    def _wake_after(self, pod: Obj, actions: Sequence[Action]) -> float | None:
        now = self._clock.now()
        moments = [action.until for action in actions if isinstance(action, HoldBack)]
        refresh = self._volumes.next_refresh(uid_of(pod))
        if refresh is not None:
            moments.append(refresh)
        deadline = spec_of(pod).get("activeDeadlineSeconds")
        status = self._status_manager.status_of(uid_of(pod)) or {}
        if deadline is not None and status.get("startTime"):
            moments.append(seconds_of(status["startTime"]) + float(deadline))
        return max(min(moments) - now, 0.0) if moments else None

    async def _terminate(self, job: Job) -> None:
        pod, uid = job.pod, uid_of(job.pod)
        observed = await self._observe(pod)
        if job.worker.cause is Cause.REJECTED and job.verdict is not None and observed is None:
            shown = {**pod, "status": self._newest_status(pod)}
            self._status_manager.set(pod, rejected_status(shown, job.verdict, self._clock.now()))
            return
        tells = job.known and not job.verdict and not is_terminal(pod)
        await self._between(pod)
        if observed is not None:
            if tells:
                self._report(job, observed, job.waiting)
                report = partial(self._report, job, observed, job.waiting)
                self._probes.end(uid, report)
            else:
                self._probes.stop(uid)
            try:
                await self._killer.kill_containers(pod, observed, job.worker.grace_seconds)
            finally:
                self._probes.stop(uid)
        sandboxes = observed.sandboxes if observed is not None else ()
        # How the containers ended is read while the pod's network is taken down …
        last, *_ = await all_of(
            [
                self._last_look(job, observed is not None),
                *(
                    self._timed(uid, "stop sandbox and network", self._stop_sandbox(sandbox.id))
                    for sandbox in sandboxes
                ),
            ]
        )
        await self._between(pod)
        self._runs.note(uid, last)
        if self._resources is not None:
            await self._resources.unprepare(uid)
            self._resources.release(uid)  # before anybody hears that its place is free
        if job.known:
            # … but told afterwards: the scheduler gives the place, and its host ports, to the next
            # pod as soon as it hears of the end.
            self._report(job, last, job.waiting, ending=True)

    async def _last_look(self, job: Job, was_there: bool) -> ObservedPod | None:
        return await self._observe(job.pod) if was_there and job.known else None

    async def _stop_sandbox(self, sandbox_id: str) -> None:
        for seconds in STOP_PAUSES:
            try:
                await self._runtime.stop_sandbox(sandbox_id)
                return
            except RuntimeUnavailable:
                raise
            except RuntimeFailure as error:
                log.debug("sandbox was not stopped, trying again", id=sandbox_id, error=error)
                await self._clock.sleep(seconds)
        await self._runtime.stop_sandbox(sandbox_id)

    async def _remove_remains(self, uid: str) -> None:
        observed = await self._observations.pod(uid)
        if observed is not None:
            ready = [sandbox.id for sandbox in observed.sandboxes if sandbox.ready]
            await all_of(self._runtime.stop_sandbox(sandbox_id) for sandbox_id in ready)
            await all_of(self._remove(container.id) for container in observed.containers)
            await all_of(self._runtime.remove_sandbox(sandbox.id) for sandbox in observed.sandboxes)
            name = f"{observed.namespace}_{observed.name}_{observed.uid}"
            await garbage.remove_directories(self._logs.places(name))
        else:
            await garbage.remove_directories(self._logs.left_of(uid))
        await garbage.remove_directories([pod_directory(uid, self._settings.root_dir)])
        self._observations.forget(uid)
        self._resizes.forget(uid)
        self._probes.forget(uid)

    async def _remove(self, container_id: str) -> None:
        self._logs.removed(container_id)
        await self._runtime.remove_container(container_id)

    async def _discard(self, observed: ObservedPod | None) -> None:
        if observed is None:
            return
        for container_id in garbage.dead_containers(observed):
            await self._remove(container_id)
        for sandbox_id in garbage.dead_sandboxes(observed):
            await self._runtime.remove_sandbox(sandbox_id)

    async def _observe(self, pod: Obj) -> ObservedPod | None:
        observed = await self._observations.pod(uid_of(pod))
        for seconds in LOG_PAUSES:
            if observed is None or not await awaits_log(pod, observed, self._settings):
                break
            await self._clock.sleep(seconds)
            observed = await self._observations.pod(uid_of(pod))
        return await with_messages(pod, observed, self._settings) if observed is not None else None

    def _report(
        self,
        job: Job,
        observed: ObservedPod | None,
        waiting: Mapping[str, Waiting],
        *,
        ending: bool = False,
    ) -> Obj:
        """The status as it is; shown is a pod's end only when it has ended."""
        uid = uid_of(job.pod)
        pod = {**job.pod, "status": self._newest_status(job.pod)}
        facts = Facts(
            now=self._clock.now(),
            node_ips=self._settings.node_ips,
            runtime_name=self._health.runtime_name,
            waiting=waiting,
            checks=self._probes.checks(uid),
            verdict=job.verdict,
            ending=ending,
            pending=self._allocations.pending.get(uid),
            resizing=self._allocations.in_progress.get(uid),
            applied=self._resizes.applied(uid),
            features=self._health.features,
        )
        before = pod["status"].get("phase")
        status = pod_status(pod, observed, facts)
        if self._resources is not None and enabled("ResourceHealthStatus"):
            status = with_resource_health(pod, status, self._resources.health)
        if before not in ("Running", status["phase"]) and status["phase"] == "Running":
            self._start_seconds.observe(max(0.0, facts.now - job.first_seen))
        shown = status if ending else held_back(status, pod["status"])
        # A simulated pod that starts at once is told of once: as Running. So is one that ends. Of a
        # real one every status is told, however short: the lives on record show them.
        begins = observed is None and status["phase"] == "Pending"
        ends = job.worker.phase is Phase.TERMINATING and not ending
        if self._settings.simulated and (begins or ends or shown is not status):
            self._status_manager.set_passing(job.pod, shown)
        elif begins:
            self._status_manager.set_soon(job.pod, shown)  # its start goes first
        else:
            self._status_manager.set(job.pod, shown)
        return status

    def _report_end(self, job: Job) -> None:
        """Nothing of it is left to clean up: what shows no end yet gets one."""
        status = self._newest_status(job.pod)
        finished = finished_status(status, job.pod)
        if finished != status:
            self._status_manager.set(job.pod, finished)

    def _newest_status(self, pod: Obj) -> Obj:
        """What we said last, with the conditions of others as the API shows them now."""
        shown: Obj = pod.get("status") or {}
        ours = self._status_manager.status_of(uid_of(pod))
        if ours is None:
            return shown
        foreign = [
            condition
            for condition in shown.get("conditions") or ()
            if condition["type"] not in OWNED
        ]
        own = [
            condition for condition in ours.get("conditions") or () if condition["type"] in OWNED
        ]
        return {**ours, "conditions": own + foreign}


def _restarts(pod: Obj, status: Obj) -> Mapping[str, int]:
    """By container, of a pod whose containers may have been removed to be restarted."""
    if not may_restart_all(spec_of(pod)):
        return _NEVER
    kinds = ("initContainerStatuses", "containerStatuses")
    told = (item for kind in kinds for item in status.get(kind) or ())
    return {item["name"]: item["restartCount"] for item in told}

"""The node agent: its parts, put together and run.

Job: build the parts, start their loops, answer lookups of the node's HTTP server.
Invariant: when `run` is cancelled, containers keep running; a new Kubelet takes them over.
Owner: cmd/ builds one per node.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from sampan.api.objects import Obj, uid_of
from sampan.api.resources import SERVICES
from sampan.api.schema.published import Schema
from sampan.client.contract import Client
from sampan.client.events import EventRecorder
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.container_spec.generate import NodeFacts
from sampan.kubelet.contracts.runtime import ObservedPod, Runtime
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.contracts.volumes_hook import Volumes
from sampan.kubelet.eviction.eviction_manager import PressureWatch
from sampan.kubelet.eviction.system_oom import SystemOom
from sampan.kubelet.images.access import ImageAccess
from sampan.kubelet.images.credentials import ImageCredentials
from sampan.kubelet.images.image_gc import ImageGarbage
from sampan.kubelet.images.image_manager import ImagePuller
from sampan.kubelet.node.graceful_shutdown import NodeShutdown
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.node.node_status_and_lease import Heartbeat
from sampan.kubelet.node_parts import API, facts_of, machine_of, made_cgroups, sources_of
from sampan.kubelet.pods.allocation import Allocations
from sampan.kubelet.pods.hooks import Hooks
from sampan.kubelet.pods.kill import Killer
from sampan.kubelet.pods.mirror import Mirrors
from sampan.kubelet.pods.perform import Performer
from sampan.kubelet.pods.pod_state import Cause, Phase
from sampan.kubelet.pods.pod_sync import PodSync
from sampan.kubelet.pods.pod_workers import PodWorkers
from sampan.kubelet.pods.sync_loop import SyncLoop
from sampan.kubelet.probes.check import NodeCheck
from sampan.kubelet.probes.node_probes import NodeProbes
from sampan.kubelet.runtime.observed import Observations
from sampan.kubelet.runtime.pleg import Relist, RuntimeHealth
from sampan.kubelet.runtime.timed import TimedRuntime
from sampan.kubelet.server.log_rotation import LogRotation
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.scripted_probes import ScriptedCheck
from sampan.kubelet.sources.apiserver import ApiserverSource, informer_of_node
from sampan.kubelet.sources.files import FileSource
from sampan.kubelet.sources.http import HttpSource
from sampan.kubelet.sources.manifests import FILE, HTTP, all_pods, one_pod
from sampan.kubelet.sources.own_node import NodeSource, informer_of_own_node
from sampan.kubelet.stats.node_stats import NodeStats
from sampan.kubelet.stats.summary import StatsSummary
from sampan.kubelet.status.recorder import ROUTINE, EventLog, PodEvents
from sampan.kubelet.status.status_manager import StatusReporter
from sampan.kubelet.volumes.node_volumes import NodeVolumes
from sampan.kubelet.volumes.simulated_volumes import SimulatedVolumes
from sampan.kubelet.volumes.tracked_objects import TrackedObjects


class Kubelet:
    def __init__(
        self,
        *,
        settings: KubeletSettings,
        client: Client,
        runtime: Runtime,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random,
        source: ApiserverSource | None = None,
        nodes: NodeSource | None = None,
        objects: TrackedObjects | None = None,
    ) -> None:
        """`source`, `nodes` and `objects`: shared by the nodes of one process, and run by their
        owner; None: its own."""
        self._settings, self._client, self._clock = settings, client, clock
        self._runtime = runtime = TimedRuntime(runtime, clock=clock, metrics=metrics)
        self._tasks = Tasks(f"kubelet {settings.node_name}")
        self._source, self._nodes = source, nodes
        self._health = RuntimeHealth()
        self._allocations = Allocations(settings.checkpoint)
        self._registered = asyncio.Event()  # the node is in the API
        self._swept = False  # of what pods that are gone have left
        self._observations = Observations(runtime)
        make_recorder = EventLog if settings.standalone else EventRecorder
        self._recorder = make_recorder(
            client, "kubelet", clock=clock, host=settings.node_name, rng=rng
        )
        untold = frozenset[str]() if settings.routine_events else ROUTINE
        events = PodEvents(self._recorder, without=untold)
        self._reporter = StatusReporter(client, tasks=self._tasks, clock=clock, rng=rng)
        self._mirrors = Mirrors(
            client,
            node=lambda: self._heartbeat.node(),
            registered=self._registered,
            is_orphaned=lambda name: self._loop.is_orphaned(name),
            shown=self._reporter.mirrored,
            tasks=self._tasks,
            clock=clock,
            rng=rng,
        )
        self._services = Informer(client, Selection(SERVICES), clock=clock, rng=rng)
        self._hooks = Hooks(runtime, clock)
        self._own_objects: TrackedObjects | None = None
        if objects is None:
            objects = self._own_objects = TrackedObjects(client, clock=clock, rng=rng)
        machine = machine_of(settings)
        self._volumes = self._made_volumes(objects, facts_of(settings, machine), rng)
        self._probes = self._made_probes(events, rng)
        self._rotation = LogRotation(
            runtime,
            settings.log_dir,
            most_bytes=settings.container_log_max_bytes,
            most_files=settings.container_log_max_files,
            clock=clock,
        )
        self._cgroups = made_cgroups(settings, machine)
        steps = self._steps(events, machine, metrics)
        self._workers = PodWorkers(steps, tasks=self._tasks, clock=clock, metrics=metrics, rng=rng)
        self._heartbeat = Heartbeat(
            settings=settings,
            client=client,
            runtime=runtime,
            machine=machine,
            health=self._health,
            recorder=self._recorder,
            clock=clock,
            rng=rng,
            registered=self._registered,
        )
        self._image_garbage = ImageGarbage(
            runtime,
            settings.image_directory or settings.root_dir,
            settings=settings.image_garbage,
            clock=clock,
            warn=self._heartbeat.warn,
        )
        self._loop = SyncLoop(
            sources=sources_of(settings),
            workers=self._workers,
            reporter=self._reporter,
            mirrors=self._mirrors,
            events=events,
            room=self._heartbeat.room,
            clock=clock,
            allocations=self._allocations,
            refetch_node=None if settings.standalone else self._refetch_node,
        )
        self._shutdown = NodeShutdown(
            settings.shutdown,
            self._workers,
            begins=self._heartbeat.shut_down,
            all_told=self.is_idle,
            clock=clock,
            metrics=metrics,
        )
        self._relist = Relist(
            settings=settings,
            runtime=runtime,
            observations=self._observations,
            health=self._health,
            wake=self._workers.wake,
            found=self._found,
            health_changed=self._health_changed,
            clock=clock,
            metrics=metrics,
        )
        self._stats = NodeStats(
            cgroups=self._cgroups,
            pods=lambda: list(self._workers.pods()),
            observed=self._observations.last_seen,
        )
        self._machine = machine
        images = settings.image_directory or settings.root_dir
        self._summary = StatsSummary(
            node_name=settings.node_name,
            stats=self._stats,
            runtime=runtime,
            machine=machine,
            directories=(settings.root_dir, settings.log_dir, images),
            clock=clock,
        )
        self._pressure = PressureWatch(
            settings=settings.eviction,
            stats=self._stats,
            images=self._image_garbage,
            runtime=runtime,
            pods=lambda: list(self._workers.pods()),
            is_over=self._is_over,
            evict=self._evict,
            events=events,
            warn=self._heartbeat.warn,
            changed=self._heartbeat.press,
            directories=(settings.root_dir, settings.image_directory or settings.root_dir),
            log_dir=settings.log_dir,
            clock=clock,
            metrics=metrics,
        )
        if not settings.simulated:
            self._declare(metrics)  # a process has one real node; simulated ones are too many

    @property
    def node_ready(self) -> asyncio.Event:
        """Set while the API shows this node as Ready."""
        return self._heartbeat.node_ready

    async def run(self) -> None:
        """Until cancelled. What runs on the node keeps running."""
        try:
            if not self._settings.standalone:
                self._follow_api()
            self._follow_manifests()
            if not self._settings.simulated and not self._settings.standalone:
                self._tasks.supervise("services", self._services.run)
            self._tasks.supervise("events", self._recorder.run)
            self._tasks.supervise("runtime events", self._relist.watch_events)
            self._tasks.supervise("relist", self._relist.run)
            if not self._settings.simulated:
                self._tasks.supervise("image garbage", self._image_garbage.run)
                self._tasks.supervise("pressure", self._pressure.run)
                self._tasks.supervise("system OOM", SystemOom(self._heartbeat.warn).run)
            if self._settings.standalone:
                await asyncio.Event().wait()
            self._tasks.supervise("lease", self._heartbeat.keep_lease)
            self._tasks.supervise("images", self._heartbeat.watch_images)
            await self._tasks.supervise("node", self._heartbeat.run)
        finally:
            if self._source is not None:
                self._source.unsubscribe(self._settings.node_name)
            if self._nodes is not None:
                self._nodes.unsubscribe(self._settings.node_name)
            self._workers.close()
            self._reporter.close()
            self._probes.close()
            await self._tasks.stop()
            await self._hooks.close()
            if self._own_objects is not None:
                await self._own_objects.stop()

    async def shut_down(self) -> None:
        """The machine goes down: end the pods in order, as the settings say. Before the agent is
        stopped; without settings nothing happens."""
        await self._shutdown.run()

    def _follow_api(self) -> None:
        name = self._settings.node_name
        if self._source is None:
            informer = informer_of_node(self._client, name, clock=self._clock)
            self._source = ApiserverSource(informer)
            self._tasks.supervise("pods", informer.run)
            self._tasks.supervise("source", self._source.run)
        self._source.subscribe(name, partial(self._deliver, API))
        if self._nodes is None:
            own = informer_of_own_node(self._client, name, clock=self._clock)
            self._nodes = NodeSource(own)
            self._tasks.supervise("own node", own.run)
        self._nodes.subscribe(name, self._heartbeat.seen)

    def _refetch_node(self, then: Callable[[], None]) -> None:
        self._tasks.start("own node once more", self._heartbeat.refetch(then))

    def _follow_manifests(self) -> None:
        settings, clock = self._settings, self._clock
        if not settings.manifests and not settings.manifest_url:
            return
        schema, name = Schema.load(), settings.node_name
        if settings.manifests:
            files = FileSource(
                settings.manifests,
                deliver=partial(self._deliver, FILE),
                decode=lambda data, path: one_pod(
                    data, schema, source=FILE, place=path, node_name=name
                ),
                clock=clock,
            )
            self._tasks.supervise("manifests", files.run)
        if settings.manifest_url:
            url = HttpSource(
                settings.manifest_url,
                deliver=partial(self._deliver, HTTP),
                decode=lambda data, place: all_pods(
                    data, schema, source=HTTP, place=place, node_name=name
                ),
                clock=clock,
                headers=settings.manifest_url_headers,
                interval_seconds=settings.manifest_url_seconds,
            )
            self._tasks.supervise("manifest URL", url.run)

    # What the node's HTTP server asks.

    def pods(self) -> list[Obj]:
        """The pods of this node, each with its newest status."""
        return [
            {**pod, "status": self._reporter.status_of(uid_of(pod)) or pod.get("status") or {}}
            for pod in self._workers.pods()
        ]

    def is_idle(self) -> bool:
        """No step runs and nothing waits to be written: for tests and for the health check."""
        parts = (self._workers, self._reporter, self._mirrors)
        return all(part.is_idle() for part in parts) and self._recorder.idle()

    def healthy(self) -> str:
        """Empty, or what is wrong with the agent itself."""
        silent = self._clock.monotonic() - self._relist.last_look
        if self._health.ready and silent > 180.0:  # as upstream's relist threshold
            return f"pleg was last seen active {silent:.0f}s ago; threshold is 3m0s"
        return ""

    def last_seen(self, uid: str) -> ObservedPod | None:
        return self._observations.last_seen(uid)

    def stats(self) -> NodeStats:
        return self._stats

    async def summary(self) -> Obj:
        return await self._summary.summary()

    async def cadvisor(self) -> str:
        from sampan.kubelet.stats import cadvisor  # nobody may ever ask

        layers = await self._summary.layers()
        return cadvisor.render(self._machine, self._stats.usages(), layers, self._clock.now())

    def probe_metrics(self) -> str:
        return self._probes.render()

    def _steps(self, events: PodEvents, machine: Machine, metrics: Metrics) -> PodSync:
        """The parts that carry out what the workers decide."""
        settings, runtime, clock = self._settings, self._runtime, self._clock
        killer = Killer(runtime=runtime, hooks=self._hooks, events=events, clock=clock)
        performer = Performer(
            runtime=runtime,
            client=self._client,
            puller=ImagePuller(
                runtime,
                clock,
                events.emit,
                ImageCredentials(settings.image_credentials, clock=clock, metrics=metrics),
                ImageAccess("" if settings.simulated else f"{settings.root_dir}/image_manager"),
                parallel=settings.parallel_image_pulls,
            ),
            killer=killer,
            hooks=self._hooks,
            volumes=self._volumes,
            events=events,
            services=self._no_services
            if settings.simulated or settings.standalone
            else self._all_services,
            node=facts_of(settings, machine),
            clock=clock,
            metrics=metrics,
            cgroups=self._cgroups,
            features=lambda: self._health.features,
        )
        return PodSync(
            settings=settings,
            runtime=runtime,
            observations=self._observations,
            health=self._health,
            performer=performer,
            killer=killer,
            volumes=self._volumes,
            probes=self._probes,
            reporter=self._reporter,
            mirrors=self._mirrors,
            allocations=self._allocations,
            events=events,
            clock=clock,
            metrics=metrics,
            cgroups=self._cgroups,
        )

    def _made_probes(self, events: PodEvents, rng: random.Random) -> NodeProbes:
        pretends = self._settings.simulated
        return NodeProbes(
            check=ScriptedCheck(self._runtime, self._settings.scenario)
            if pretends
            else NodeCheck(self._runtime),
            wake=self._wake,
            events=events,
            tasks=self._tasks,
            clock=self._clock,
            rng=rng,
            node_ips=self._settings.node_ips,
            looks_early=not pretends,
        )

    def _made_volumes(
        self, objects: TrackedObjects, facts: NodeFacts, rng: random.Random
    ) -> Volumes:
        if self._settings.simulated:
            return SimulatedVolumes(objects=objects, changed=self._retry, node=facts)
        return NodeVolumes(
            client=self._client,
            objects=objects,
            changed=self._retry,
            node=facts,
            clock=self._clock,
            rng=rng,
        )

    def _deliver(self, source: str, pods: Sequence[Obj]) -> None:
        first = not self._loop.all_ready()
        self._loop.deliver(source, pods)
        if first:
            self._relist.look_soon()  # only now may orphans be told from pods

    def _found(self, pods: Sequence[ObservedPod]) -> None:
        self._loop.look_for_orphans(pods)
        known = self._workers.__contains__
        # What runs without being wanted has a worker by now, which looks after its volumes.
        if self._loop.all_ready() and not self._swept:
            self._swept = True
            self._tasks.start("volumes of gone pods", self._volumes.remove_orphans(known))
        if self._loop.all_ready() and self._cgroups is not None:
            # Each time, as upstream: a runtime that fails late leaves them after their pod went.
            self._cgroups.remove_orphans(known)
        too_large = self._rotation.too_large(pods)
        if too_large:
            self._tasks.start("log rotation", self._rotation.rotate(too_large))

    def _is_over(self, uid: str) -> bool:
        phase = self._workers.phase(uid)
        return phase is None or phase >= Phase.TERMINATED

    def _evict(self, uid: str, grace_seconds: float, verdict: Verdict) -> None:
        self._workers.kill(uid, grace_seconds, Cause.EVICTED, verdict)

    def _retry(self, uid: str) -> None:
        self._workers.retry(uid)

    def _wake(self, uid: str) -> None:
        self._workers.wake(uid)

    async def _all_services(self) -> Iterable[Obj]:
        await self._services.synced()
        return self._services.cache.all()

    async def _no_services(self) -> Iterable[Obj]:
        """Nobody reads the environment of a simulated container; without an API there are none."""
        return ()

    def _health_changed(self) -> None:
        self._heartbeat.poke()
        if self._health.ready and self._health.network_ready:
            self._workers.wake_failed()

    def _declare(self, metrics: Metrics) -> None:
        metrics.gauge(
            "kubelet_running_pods", "Number of pods that have a running pod sandbox", ()
        ).read_from(lambda: {(): float(self._observations.count().sandboxes)})
        metrics.gauge(
            "kubelet_running_containers", "Number of containers currently running",
            ("container_state",),
        ).read_from(self._container_counts)  # fmt: skip
        metrics.gauge("kubelet_desired_pods", "The number of pods the kubelet is being instructed "
                      "to run.").read_from(lambda: {(): float(len(self._workers))})  # fmt: skip

    def _container_counts(self) -> dict[tuple[str, ...], float]:
        return {(state,): float(n) for state, n in self._observations.count().containers.items()}

"""Kubelet: its parts, put together and run.

Job: build the parts, start their loops, answer lookups of the node's HTTP server.
Invariant: when `run` is cancelled, containers keep running; a new Kubelet takes them over.
Owner: cmd/ builds one per node.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from sampan.api.objects import Obj, uid_of
from sampan.api.schema.published import Schema
from sampan.core.durations import duration_text
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.flag import Flag
from sampan.kubelet.cgroups.cgroup_thread import CgroupThread
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import ObservedPod, RuntimeEvent
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.eviction.eviction_manager import EvictablePods, EvictionManager, NodeCallbacks
from sampan.kubelet.eviction.system_oom import SystemOom
from sampan.kubelet.images.credentials import ImageCredentials
from sampan.kubelet.images.image_gc import ImageGCManager
from sampan.kubelet.images.image_manager import ImageManager
from sampan.kubelet.node.graceful_shutdown import NodeShutdown
from sampan.kubelet.node.node_status_and_lease import NodeStatusManager
from sampan.kubelet.node.shared_leases import Leases
from sampan.kubelet.node_parts import API, Loop, api_side, machine_side, sources_of
from sampan.kubelet.node_plugins import NodeHooks
from sampan.kubelet.pods.allocation import Allocations
from sampan.kubelet.pods.hooks import Hooks
from sampan.kubelet.pods.kill import Killer
from sampan.kubelet.pods.mirror import Mirrors
from sampan.kubelet.pods.parts import PodState, PodTools
from sampan.kubelet.pods.perform import Performer
from sampan.kubelet.pods.pod_config import PodConfig
from sampan.kubelet.pods.pod_state import Cause, Phase
from sampan.kubelet.pods.pod_sync import PodSync
from sampan.kubelet.pods.pod_workers import PodWorkers
from sampan.kubelet.pods.start_at_once import StartAtOnce
from sampan.kubelet.pods.sync_loop import NodeView, SyncLoop
from sampan.kubelet.probes.node_probes import ProbeManager
from sampan.kubelet.runtime.observed import Observations
from sampan.kubelet.runtime.pleg import Pleg, RuntimeHealth
from sampan.kubelet.runtime.pod_logs import PodLogs
from sampan.kubelet.runtime.timed import TimedRuntime
from sampan.kubelet.server.log_rotation import LogRotation
from sampan.kubelet.sources.apiserver import ApiserverSource, informer_of_node
from sampan.kubelet.sources.files import FileSource
from sampan.kubelet.sources.http import HttpSource
from sampan.kubelet.sources.manifests import FILE, HTTP, all_pods, one_pod
from sampan.kubelet.sources.own_node import NodeSource, informer_of_own_node
from sampan.kubelet.stats.node_stats import NodeStats
from sampan.kubelet.stats.summary import StatsSummary
from sampan.kubelet.stats.volume_figures import VolumeStatsReader, no_csi_stats
from sampan.kubelet.status.recorder import ROUTINE, PodEvents
from sampan.kubelet.status.status_manager import StatusManager
from sampan.kubelet.volumes.tracked_objects import TrackedObjects

RELIST_THRESHOLD_SECONDS = 180.0  # after which an agent counts as stuck, as upstream


@dataclass(frozen=True, slots=True)
class SharedSources:
    """What the nodes of one process share, and their owner runs; None: the node's own."""

    pods: ApiserverSource | None = None
    nodes: NodeSource | None = None
    objects: TrackedObjects | None = None
    leases: Leases | None = None


class Kubelet:
    def __init__(self, context: NodeContext, shared: SharedSources | None = None) -> None:
        runtime = TimedRuntime(context.runtime, clock=context.clock, metrics=context.metrics)
        self._context = context = replace(context, runtime=runtime)
        self.settings = context.settings
        self._settings, self._clock, self._tasks = context.settings, context.clock, context.tasks
        shared = shared or SharedSources()
        self._source, self._nodes = shared.pods, shared.nodes
        self._own_objects: TrackedObjects | None = None
        self._leases = shared.leases
        objects = shared.objects
        if objects is None:
            objects = TrackedObjects(context.client, clock=context.clock, rng=context.rng)
            self._own_objects = objects
        self._swept = False  # of what pods that are gone have left
        self._runs, self._keeps_itself = False, context.keeper is None
        self._stopped = False
        self._stop_listening: Callable[[], None] | None = None
        self._health = RuntimeHealth()
        self._workers = PodWorkers(
            tasks=self._tasks, clock=context.clock, metrics=context.metrics, rng=context.rng
        )
        self._above = api_side(context)
        self._below = machine_side(context, objects, self._workers.retry, self._warn)
        self._build_node()
        self._build_pods()
        self._build_watches()
        self._join_plugins()
        if self._below.is_real:
            self._declare()  # a process has one real node; simulated ones are too many

    def _warn(self, pod: Obj, reason: str, message: str) -> None:
        self._events.warning(pod, reason, message)

    def _build_node(self) -> None:
        settings = self._settings
        self._recorder = self._above.recorder
        self._recorder.begin = self._start_recorder
        untold = frozenset[str]() if settings.routine_events else ROUTINE
        self._events = PodEvents(self._recorder, without=untold)
        self._node_status = NodeStatusManager(
            self._context,
            machine=self._below.machine,
            health=self._health,
            recorder=self._recorder,
            leases=self._leases,
            plugins=self._below.plugins,
        )

    def _build_pods(self) -> None:
        """The steps of a pod, and the loop that feeds them."""
        context, runtime = self._context, self._context.runtime
        self._pod_config = PodConfig(sources_of(self._settings))
        self._status_manager = StatusManager(
            context.client, tasks=self._tasks, clock=self._clock, rng=context.rng
        )
        self._mirrors = Mirrors(
            context,
            node=self._node_status.node,
            registered=self._node_status.registered,
            is_orphaned=self._is_orphaned,
            shown=self._status_manager.mirrored,
        )
        self._observations = Observations(runtime)
        records = PodState(
            self._observations,
            self._status_manager,
            self._mirrors,
            Allocations(self._settings.checkpoint),
        )
        self._tools = self._build_tools()
        self._probes = ProbeManager(
            context,
            check=self._below.check,
            wake=self._workers.wake,
            events=self._events,
            looks_early=self._below.is_real,
        )
        self._workers.steps = PodSync(
            context,
            self._tools,
            records,
            performer=lambda: self._performer,
            probes=self._probes,
            health=self._health,
        )
        self._loop = SyncLoop(
            sources=self._pod_config,
            workers=self._workers,
            records=records,
            events=self._events,
            node=NodeView(
                self._node_status.room,
                self._refetch_node if self._above.is_there else None,
                context.goes_on,
                self._held_devices,
            ),
            clock=self._clock,
        )

    def _build_tools(self) -> PodTools:
        context, below = self._context, self._below
        self._hooks = Hooks(context.runtime, self._clock, self._events)
        self._cgroups = CgroupThread(below.cgroups) if below.cgroups is not None else None
        killer = Killer(
            runtime=context.runtime,
            hooks=self._hooks,
            events=self._events,
            clock=self._clock,
            traces=context.metrics.traces,
        )
        at_once, settings = StartAtOnce(context, below.image_access), self._settings
        logs = PodLogs(settings.log_dir, settings.log_registry, settings.container_logs)
        logs.start()
        return PodTools(
            killer, self._hooks, below.volumes, self._events, at_once, self._cgroups, logs,
            below.plugins.resources if below.plugins is not None else None,
        )  # fmt: skip

    @cached_property
    def _performer(self) -> Performer:
        """Nobody needs it where every pod starts at once."""
        context, settings = self._context, self._settings
        credentials = ImageCredentials(
            settings.image_credentials, clock=context.clock, metrics=context.metrics
        )
        puller = ImageManager(
            context.runtime,
            context.clock,
            self._events.emit,
            credentials,
            self._below.image_access,
            parallel=settings.parallel_image_pulls,
        )
        return Performer(
            context,
            self._tools,
            puller=puller,
            services=self._above.services,
            node=self._below.facts,
            features=lambda: self._health.features,
        )

    def _build_watches(self) -> None:
        """What looks at the runtime now and then."""
        self._pleg = Pleg(
            self._context,
            observations=self._observations,
            health=self._health,
            wake=self._workers.wake,
            found=self._found,
            health_changed=self._health_changed,
        )

    def _keep_resources(self, is_known: Callable[[str], bool]) -> None:
        """Of pods that went while the agent was away nothing is held."""
        if self._below.plugins is not None:
            self._below.plugins.resources.keep_only(is_known)

    def _held_devices(self, uid: str) -> Mapping[str, int]:
        plugins = self._below.plugins
        return plugins.devices.least_allocatable(uid) if plugins is not None else {}

    def _join_plugins(self) -> None:
        if self._below.plugins is not None:
            hooks = NodeHooks(
                node=self._node_status.node,
                registered=self._node_status.registered,
                poke=self._node_status.poke,
                wake=self._workers.wake_failed,
                wake_pod=self._workers.wake,
                tell=self._recorder.record,
                running=self._observations.running,
                active_pods=self._workers.active_pods,
            )
            self._below.plugins.join(hooks)

    # What only a real node needs, or whom somebody asks: there are thousands of others.

    @cached_property
    def _shutdown(self) -> NodeShutdown:
        return NodeShutdown(
            self._settings.shutdown,
            self._workers,
            begins=self._node_status.shut_down,
            all_told=self.is_idle,
            clock=self._clock,
            metrics=self._context.metrics,
        )

    @cached_property
    def _rotation(self) -> LogRotation:
        settings = self._settings
        return LogRotation(
            self._context.runtime,
            settings.log_dir,
            most_bytes=settings.container_log_max_bytes,
            most_files=settings.container_log_max_files,
            clock=self._clock,
        )

    @cached_property
    def _image_gc(self) -> ImageGCManager:
        settings = self._settings
        return ImageGCManager(
            self._context.runtime,
            settings.image_directory or settings.root_dir,
            settings=settings.image_garbage,
            clock=self._clock,
            warn=self._node_status.warn,
        )

    @cached_property
    def _stats(self) -> NodeStats:
        return NodeStats(
            cgroups=self._below.cgroups,
            pods=self._all_pods,
            observed=self._observations.last_seen,
        )

    @cached_property
    def _summary(self) -> StatsSummary:
        settings = self._settings
        images = settings.image_directory or settings.root_dir
        return StatsSummary(
            node_name=settings.node_name,
            stats=self._stats,
            runtime=self._context.runtime,
            machine=self._below.machine,
            directories=(settings.root_dir, settings.log_dir, images),
            volumes=self._volume_stats,
        )

    @cached_property
    def _volume_stats(self) -> VolumeStatsReader:
        plugins, context = self._below.plugins, self._context
        csi = plugins.csi.stats if plugins is not None else no_csi_stats
        return VolumeStatsReader(
            context.client, self._settings.root_dir, csi, self._clock, self._events.warning
        )

    @cached_property
    def _eviction_manager(self) -> EvictionManager:
        return EvictionManager(
            self._context,
            stats=self._stats,
            images=self._image_gc,
            pods=EvictablePods(self._all_pods, self._is_over, self._evict, self._events),
            node=NodeCallbacks(self._node_status.warn, self._node_status.press),
        )

    @property
    def node_ready(self) -> Flag:
        """Set while the API shows this node as Ready."""
        return self._node_status.node_ready

    def registration(self) -> Obj:
        """The Node as this agent would register it now."""
        return self._node_status.registration()

    async def run(self) -> None:
        """Until cancelled. What runs on the node keeps running."""
        try:
            if self._above.is_there:
                self._follow_api()
            self._follow_manifests()
            self._runs = True
            (self._start_loops if self._keeps_itself else self._listen)()
            await asyncio.get_running_loop().create_future()
        finally:
            self._runs, self._stopped = False, True
            self._listen_no_more()
            if self._source is not None:
                self._source.unsubscribe(self._settings.node_name)
            if self._nodes is not None:
                self._nodes.unsubscribe(self._settings.node_name)
            self._workers.close()
            self._status_manager.close()
            self._probes.close()
            await self._tasks.stop()
            if self._below.plugins is not None:
                await self._below.plugins.close()
            await self._hooks.close()
            if self._cgroups is not None:
                self._cgroups.close()
            if self._own_objects is not None:
                await self._own_objects.stop()

    def keep_itself(self) -> None:
        """The node's keeper has left."""
        if self._keeps_itself:
            return
        self._keeps_itself = True
        self._node_status.leave_keeper()
        if self._runs:
            self._listen_no_more()
            self._start_loops()

    def _listen(self) -> None:
        assert self._context.keeper is not None
        self._stop_listening = self._context.keeper.listen(self._hear)
        self._tasks.start("first look", self._pleg.look_once())

    def _hear(self, event: RuntimeEvent | None) -> None:
        if event is not None:
            self._pleg.hear(event)
        elif self._context.keeper is not None:
            self._context.keeper.leave()  # the runtime is down, which only the agent can tell

    def _listen_no_more(self) -> None:
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def _start_recorder(self) -> None:
        """Most nodes have nothing to tell."""
        if not self._stopped:
            self._tasks.supervise("events", self._recorder.run)

    def _start_loops(self) -> None:
        for name, loop in self._loops():
            self._tasks.supervise(name, loop)

    def _loops(self) -> Iterator[tuple[str, Loop]]:
        yield from self._above.loops
        yield "runtime events", self._pleg.watch_events
        yield "relist", self._pleg.run
        if self._below.is_real:
            yield "image garbage", self._image_gc.run
            yield "pressure", self._eviction_manager.run
            yield "system OOM", SystemOom(self._node_status.warn).run
        if self._above.is_there:
            yield "lease", self._node_status.keep_lease
            yield "images", self._node_status.watch_images
            yield "node", self._node_status.run
        if self._below.plugins is not None:
            yield from self._below.plugins.loops()

    @property
    def shuts_down_gracefully(self) -> bool:
        return bool(self._settings.shutdown)

    async def shut_down(self) -> None:
        """The machine goes down: end the pods in order, as the settings say. Before the agent is
        stopped; without settings nothing happens."""
        if self._settings.shutdown:
            await self._shutdown.run()

    def _follow_api(self) -> None:
        name = self._settings.node_name
        if self._source is None:
            informer = informer_of_node(self._context.client, name, clock=self._clock)
            self._source = ApiserverSource(informer)
            self._tasks.supervise("pods", informer.run)
            self._tasks.supervise("source", self._source.run)
        self._source.subscribe(name, partial(self._deliver, API))
        if self._nodes is None:
            own = informer_of_own_node(self._context.client, name, clock=self._clock)
            self._nodes = NodeSource(own)
            self._tasks.supervise("own node", own.run)
        self._nodes.subscribe(name, self._own_node_seen)

    def _own_node_seen(self, node: Obj) -> None:
        self._node_status.seen(node)
        if self._below.plugins is not None:
            self._below.plugins.node_seen(node)

    def _refetch_node(self, then: Callable[[], None]) -> None:
        self._tasks.start("own node once more", self._node_status.refetch(then))

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
            {
                **pod,
                "status": self._status_manager.status_of(uid_of(pod)) or pod.get("status") or {},
            }
            for pod in self._workers.pods()
        ]

    def is_idle(self) -> bool:
        """No step runs and nothing waits to be written: for tests and for the health check."""
        parts = (self._workers, self._status_manager, self._mirrors)
        return all(part.is_idle() for part in parts) and self._recorder.idle()

    def healthy(self) -> str:
        """Empty, or what is wrong with the agent itself. Who listens to a runtime that loses no
        event looks at it once."""
        if not self._keeps_itself:
            return ""
        silent = self._clock.monotonic() - self._pleg.last_look
        # As upstream; longer only where we look less often than that.
        threshold = max(RELIST_THRESHOLD_SECONDS, 2 * self._settings.relist_seconds)
        if self._health.ready and silent > threshold:
            limit = duration_text(int(threshold * 1e9))
            return f"pleg was last seen active {silent:.0f}s ago; threshold is {limit}"
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
        usages = self._stats.bounded_usages()
        return cadvisor.render(self._below.machine, usages, layers, self._clock.now())

    async def volume_metrics(self) -> str:
        """What /metrics shows beside the rest."""
        return await self._volume_stats.metrics(self._all_pods()) if self._below.is_real else ""

    def probe_metrics(self) -> str:
        return self._probes.render()

    def _deliver(self, source: str, pods: Sequence[Obj]) -> None:
        first = not self._loop.all_ready()
        self._loop.deliver(source, pods)
        if first and self._loop.all_ready():
            wanted, never_had = self._loop.wanted_uids(), self._observations.never_had
            # What still runs of a pod that nobody wants gives back what it has when it ends.
            self._keep_resources(lambda uid: uid in wanted or not never_had(uid))
        if first:
            self._pleg.look_soon()  # only now may orphans be told from pods

    def _found(self, pods: Sequence[ObservedPod]) -> None:
        self._loop.look_for_orphans(pods)
        known = self._workers.__contains__
        # What runs without being wanted has a worker by now, which looks after its volumes.
        if self._loop.all_ready() and not self._swept:
            self._swept = True
            wanted = self._loop.wanted_uids()
            self._keep_resources(lambda uid: uid in wanted or known(uid))
            self._tasks.start("volumes of gone pods", self._below.volumes.remove_orphans(known))
        if self._loop.all_ready() and self._cgroups is not None:
            # Each time, as upstream: a runtime that fails late leaves them after their pod went.
            self._tasks.start("cgroups of gone pods", self._cgroups.remove_orphans(known))
        if not self._below.is_real:
            return  # what a simulated container writes is written at once, and short
        too_large = self._rotation.too_large(pods)
        if too_large:
            self._tasks.start("log rotation", self._rotation.rotate(too_large))

    def _all_pods(self) -> list[Obj]:
        return list(self._workers.pods())

    def _is_orphaned(self, full_name: str) -> bool:
        """Has every source spoken, and none a pod of that name?"""
        return self._pod_config.all_ready() and not self._workers.has_name(full_name)

    def _is_over(self, uid: str) -> bool:
        phase = self._workers.phase(uid)
        return phase is None or phase >= Phase.TERMINATED

    def _evict(self, uid: str, grace_seconds: float, verdict: Verdict) -> None:
        self._workers.kill(uid, grace_seconds, Cause.EVICTED, verdict)

    def _health_changed(self) -> None:
        self._node_status.poke()
        if self._health.ready and self._health.network_ready:
            self._workers.wake_failed()

    def _declare(self) -> None:
        metrics = self._context.metrics
        metrics.gauge(
            "kubelet_running_pods", "Number of pods that have a running pod sandbox", ()
        ).read_from(lambda: {(): float(self._observations.count().sandboxes)})
        metrics.gauge(
            "kubelet_running_containers", "Number of containers currently running",
            ("container_state",),
        ).read_from(self._container_counts)  # fmt: skip
        metrics.gauge(
            "kubelet_node_name", "The node's name. The count is always 1.", ("node",)
        ).set(1.0, self._settings.node_name)
        metrics.gauge("kubelet_desired_pods", "The number of pods the kubelet is being instructed "
                      "to run.").read_from(lambda: {(): float(len(self._workers))})  # fmt: skip

    def _container_counts(self) -> dict[tuple[str, ...], float]:
        return {(state,): float(n) for state, n in self._observations.count().containers.items()}

"""Simulated nodes of an all-in-one cluster: thousands in one process.

Job: make their agents and runtimes over what they share (one watch of the pods, one of the objects
    that pods refer to), start them, stop them.
Invariant: no task and no timer for a pod that is idle, nor for one of many nodes that has none.
"""

import asyncio
import random
import ssl
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.resources import LEASES, NODES, PODS
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.cmd.cluster.nodes import (
    ClientMaker,
    NodeIdentity,
    Register,
    Renew,
    Report,
    Together,
    all_ready,
)
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.simulated.node_drivers import NodeDrivers
from sampan.cmd.cluster.simulated.simulated_fleet import (
    MANY_NODES,
    VIRTUAL_HEARTBEAT_SECONDS,
    SimulatedFleet,
)
from sampan.cmd.cluster.simulated.simulated_servers import SimulatedServers
from sampan.cmd.flags.scenario import scenario_in
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.http.origin import Origin
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of

if TYPE_CHECKING:
    from sampan.kubelet.context import Keeper, NodeContext
    from sampan.kubelet.contracts.runtime import Image
    from sampan.kubelet.kubelet import Kubelet, SharedSources
    from sampan.kubelet.node.leases_on_demand import LeasesOnDemand
    from sampan.kubelet.node.shared_leases import Leases, SharedLeases
    from sampan.kubelet.server.http_server import KubeletServer
    from sampan.kubelet.simulated.idle_nodes import IdleNodes
    from sampan.kubelet.simulated.node_types import NodeShape
    from sampan.kubelet.simulated.runtime import SimulatedRuntime
    from sampan.kubelet.simulated.scenario import Scenario
    from sampan.kubelet.volumes.tracked_objects import TrackedObjects

log = get_logger(__name__)

REGISTERED_AT_ONCE = 100
NODE_LEASES, NOT_READY = "kube-node-lease", "node.kubernetes.io/not-ready"
SETTLED_SECONDS, SETTLED_LOOK_SECONDS = 2.0, 0.01


class SimulatedNodes:
    """Any number of nodes that only pretend, sharing one watch of the pods."""

    mount_volumes = False
    real_names = ()

    def __init__(
        self,
        settings: UpSettings,
        identity: NodeIdentity,
        progress: Progress,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._settings, self.identity = settings, identity
        self._progress, self._clock, self._rng = progress, clock, rng
        self._fleet = SimulatedFleet(settings, identity)  # a mistake in its file is said at once
        self._shapes = self._fleet.shapes
        self._tasks = Tasks("simulated nodes")
        self._objects: TrackedObjects | None = None
        self._renew: Renew | None = None
        self._leases: LeasesOnDemand | None = None
        self._register_all: Register | None = None
        self._report_all: Report | None = None
        self._idle: IdleNodes | None = None
        self._boots: _Boot | None = None
        self._kubelets: dict[str, Kubelet] = {}
        self._agents: dict[str, asyncio.Task[None]] = {}
        self.runtimes: dict[str, SimulatedRuntime] = {}  # by node: for who lets containers fail
        self._servers = SimulatedServers(self._server_of)
        self._drivers = NodeDrivers(clock)

    @property
    def pretend_drivers(self) -> bool:
        return any(shape.pretence.drivers for shape in self._shapes)

    async def gateways(self) -> tuple[str, ...]:
        return ()

    async def prepare(self) -> None:
        """Load what their agents are made of, while the store is read: later, others would wait."""
        if self._settings.clock == "real":
            await asyncio.to_thread(import_module, "sampan.kubelet.kubelet")

    def act_together(self, together: Together) -> None:
        self._renew, self._register_all = together.renew, together.register
        self._report_all = together.report

    def leases_on_demand(self) -> "LeasesOnDemand | None":
        """Where time is virtual."""
        virtual = self._settings.clock == "virtual" and not self._settings.quiet_nodes
        if not virtual or self._renew is None:
            return None
        return self.renew_on_demand(self._renew)

    def renew_on_demand(self, renew: Renew) -> "LeasesOnDemand":
        """Where time is virtual, and whoever calls this tells of those that read leases, and asks
        `attends` before a node counts as silent."""
        from sampan.kubelet.node.leases_on_demand import LeasesOnDemand

        self._leases = LeasesOnDemand(renew, self._clock, VIRTUAL_HEARTBEAT_SECONDS)
        return self._leases

    def attends(self, node: str) -> bool:
        """Whether it lives: its agent does, or it needs none yet."""
        agent = self._agents.get(node)
        lives = agent is not None and not agent.done() and not agent.cancelling()
        is_idle = self._idle is not None and node in self._idle
        return self._leases is not None and (lives or is_idle)

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        self._servers.tls = tls
        metrics.memory.add("simulated nodes", lambda: [self], count=lambda: len(self._kubelets))
        with self._progress.step("nodes") as step:
            scenario = scenario_in(self._settings.node.scenario)
            pods, nodes = self._pods(clients), self._nodes(clients)
            shared = self._shared(clients, pods, nodes)
            boot = _Boot(clients, metrics, shared, pods, nodes, scenario)
            self._boots = boot
            await all_of([pods.synced(), nodes.synced()])
            busy, like = self._sorted_out()
            for number in busy:
                self._boot(number, boot, self._pods_of(self._shapes[number].name))
                await asyncio.sleep(0)  # the API is asked by others, too
            for numbers in like:
                await self._register(numbers, boot, nodes, step.count)
            await all_ready([kubelet.node_ready for kubelet in self._kubelets.values()], step.count)
            await self._drivers.start(self._shapes, clients)
            step.detail = f"{len(self._shapes)} simulated, Ready"
        for number, shape in enumerate(self._shapes):
            if shape.outages:
                self._tasks.start("failures", self._fail(number, shape, boot))

    def _sorted_out(self) -> tuple[list[int], list[list[int]]]:
        """Those that keep themselves, and the others, by their shape."""
        if self._idle is None:
            return list(range(len(self._shapes))), []
        busy, like = [], defaultdict[str, list[int]](list)
        for number, shape in enumerate(self._shapes):
            if not number or shape.outages or shape.pretence.is_any:
                busy.append(number)
            else:
                like[shape.likeness].append(number)
        return busy, list(like.values())

    async def _register(
        self, numbers: list[int], boot: "_Boot", nodes: Informer, told: Callable[[int, int], None]
    ) -> None:
        """The first of those that are alike by itself, the others as it has been."""
        from sampan.kubelet.simulated.idle_nodes import is_like

        first, *others = numbers
        assert self._idle is not None
        name = self._shapes[first].name
        self._boot(first, boot, self._pods_of(name))
        await all_ready([self._kubelets[name].node_ready])
        pattern, new = self._kubelets[name].registration(), []
        for number in others:
            each = self._shapes[number].name
            node, pods = nodes.cache.get(each), self._pods_of(each)
            if node is None and not pods:
                new.append(number)
                continue
            await asyncio.sleep(0)  # the API is asked by others, too
            addresses = self._fleet.addresses[number]
            if node is None or not is_like(node, pattern, addresses, has_pods=bool(pods)):
                self._boot(number, boot, pods)
                continue
            self._idle.add(each, was_away=True)
            if not self._go_on(pods, boot):
                self._idle.run_pods(each)
        if new:
            await self._settle(name, boot.clients, nodes)
        for begin in range(0, len(new), REGISTERED_AT_ONCE):
            await self._register_some(name, new[begin : begin + REGISTERED_AT_ONCE], boot)
            told(len(self._idle) + len(self._kubelets), len(self._shapes))

    def _go_on(self, pods: Sequence[Obj], boot: "_Boot") -> bool:
        """Whether they do without an agent. When the machine goes down they do not, where that is
        done in order."""
        from sampan.kubelet.simulated.takeover import needs_no_agent

        if pods and self._fleet.shuts_down_gracefully:
            return False
        return all(needs_no_agent(pod, boot.scenario) for pod in pods)

    def _pods_of(self, name: str) -> Sequence[Obj]:
        from sampan.kubelet.sources.apiserver import INDEX as NODE_INDEX

        assert self._boots is not None
        return self._boots.pods.cache.by(NODE_INDEX, name)

    async def _register_some(self, pattern: str, numbers: list[int], boot: "_Boot") -> None:
        assert self._idle is not None
        assert self._register_all is not None
        names = {self._shapes[number].name: number for number in numbers}
        addresses = {name: self._fleet.addresses[number] for name, number in names.items()}
        left = set(await self._register_all(pattern, addresses))
        for name, number in names.items():
            if name in left:
                self._boot(number, boot)
            else:
                self._idle.add(name, was_away=False)

    async def _settle(self, name: str, clients: ClientMaker, nodes: Informer) -> None:
        """Wait until a controller has seen that it is ready, and it has a lease; where there is no
        such controller, not long."""
        client, began = clients(f"system:node:{name}"), self._clock.monotonic()
        while self._clock.monotonic() - began < SETTLED_SECONDS:
            taints = spec_of(nodes.cache.get(name) or {}).get("taints") or ()
            if not any(taint["key"] == NOT_READY for taint in taints):
                with suppress(NotFound):
                    await client.get(LEASES, NODE_LEASES, name)
                    return
            await self._clock.sleep(SETTLED_LOOK_SECONDS)

    def _boot(
        self, number: int, boot: "_Boot", running: Sequence[Obj] = (), kept: Obj | None = None
    ) -> None:
        """`running`: the pods whose containers the last process has left to this one. A machine
        that failed has none. `kept`: the Node of one that stays with the idle ones."""
        from sampan.kubelet.kubelet import Kubelet

        shape = self._shapes[number]
        client = boot.clients(f"system:node:{shape.name}")
        node = self._context(number, client, boot)
        if running:
            runtime = self.runtimes[shape.name]
            runtime.table.take_over(running, node.settings.log_dir)
            node = replace(node, goes_on=runtime.table.goes_on)
        if kept is not None:
            node = replace(node, keeper=self._keeper(shape.name, kept))
        kubelet = self._kubelets[shape.name] = Kubelet(node, boot.shared)
        self._agents[shape.name] = self._tasks.supervise(shape.name, kubelet.run)

    def _keeper(self, name: str, node: Obj) -> "Keeper":
        from sampan.kubelet.context import Keeper

        assert self._idle is not None
        return Keeper(node, self.runtimes[name].listen, partial(self._idle.leave, name))

    async def _fail(self, number: int, shape: "NodeShape", boot: "_Boot") -> None:
        began = self._clock.monotonic()
        for outage in shape.outages:
            await self._clock.sleep(began + outage.at_seconds - self._clock.monotonic())
            await self.kill(shape.name)
            log.info("simulated node fails", node=shape.name)
            if outage.seconds is None:
                return
            await self._clock.sleep(outage.seconds)
            await asyncio.wait([self._agents[shape.name]])
            await self._servers.stop_one(shape.name)
            self._boot(number, boot)
            log.info("simulated node boots", node=shape.name)

    def _pods(self, clients: ClientMaker) -> Informer:
        """What they share they read as one who may read it all; a node may not."""
        pods = Informer(
            clients("system:kube-controller-manager"), Selection(PODS), clock=self._clock
        )
        self._tasks.supervise("pods", pods.run)
        return pods

    def _nodes(self, clients: ClientMaker) -> Informer:
        client = clients("system:kube-controller-manager")
        nodes = Informer(client, Selection(NODES), clock=self._clock)
        self._tasks.supervise("own nodes", nodes.run)
        return nodes

    def _shared(self, clients: ClientMaker, pods: Informer, nodes: Informer) -> "SharedSources":
        from sampan.kubelet.kubelet import SharedSources
        from sampan.kubelet.sources.apiserver import ApiserverSource
        from sampan.kubelet.sources.own_node import NodeSource
        from sampan.kubelet.volumes.tracked_objects import TrackedObjects

        client = clients("system:kube-controller-manager")
        source, own_nodes = ApiserverSource(pods, self._has_pods), NodeSource(nodes)
        self._objects = TrackedObjects(client, clock=self._clock, rng=self._rng)
        self._tasks.supervise("source", source.run)
        leases = self._leases or self._shared_leases()
        if leases is not None:
            self._tasks.supervise("leases", leases.run)
        if leases is not None and self._register_all is not None and len(self._shapes) > MANY_NODES:
            self._idle = self._idle_nodes(leases)
            nodes.on_change(self._idle.seen)
        return SharedSources(source, own_nodes, self._objects, leases)

    def _idle_nodes(self, leases: "Leases") -> "IdleNodes":
        from sampan.kubelet.simulated.idle_nodes import IdleNodes

        idle = IdleNodes(leases, self, self._clock, self._fleet.report_seconds)
        self._tasks.supervise("idle nodes", idle.run)
        return idle

    def _has_pods(self, name: str) -> None:
        if self._idle is not None:
            self._idle.run_pods(name)

    # What is asked by those that keep idle nodes.

    def client_of(self, name: str) -> Client:
        assert self._boots is not None
        return self._boots.clients(f"system:node:{name}")

    def images_of(self, name: str) -> "Sequence[Image]":
        return self.runtimes[name].images_now()

    def shown(self, name: str) -> Obj:
        assert self._boots is not None
        return status_of(self._boots.nodes.cache.get(name) or {})

    async def report(self, images: Mapping[str, Sequence[Obj] | None]) -> Collection[str]:
        return images.keys() if self._report_all is None else await self._report_all(images)

    def run_pods(self, name: str) -> None:
        assert self._boots is not None
        assert self._idle is not None
        node = self._boots.nodes.cache.get(name)
        if node is None:
            self._idle.leave(name)  # somebody deleted it
        else:
            self._boot(self._fleet.named[name], self._boots, self._pods_of(name), kept=node)

    def leave(self, name: str) -> None:
        assert self._boots is not None
        if name in self._kubelets:
            self._kubelets[name].keep_itself()
        else:
            self._boot(self._fleet.named[name], self._boots, self._pods_of(name))

    async def place_of(self, kubelet: Origin) -> Origin:
        """A made-up address is never dialled: the node answers from this process."""
        name = self._fleet.node_at(kubelet.host)
        if not name:
            return kubelet
        if self._idle is not None:
            self._idle.have_agent(name)
        return await self._servers.place_of(name)

    def _shared_leases(self) -> "SharedLeases | None":
        from sampan.kubelet.node.shared_leases import SHARES, SharedLeases

        if self._renew is None:
            return None
        # Where time is virtual nobody is overrun by what all of them do at one moment.
        shares = 1 if self._settings.clock == "virtual" else SHARES
        return SharedLeases(self._renew, self._clock, self._fleet.heartbeat_seconds, shares)

    def _context(self, number: int, client: Client, boot: "_Boot") -> "NodeContext":
        from sampan.kubelet.context import NodeContext

        runtime = self._fleet.runtime(number, self._clock, boot.scenario)
        self.runtimes[self._shapes[number].name] = runtime
        settings = self._fleet.kubelet_settings(number, boot.scenario)
        return NodeContext(
            settings, client, runtime, self._clock, boot.metrics, self._rng,
            start_at_once=runtime.start_at_once,
        )  # fmt: skip

    async def kill(self, name: str) -> None:
        """The machine is gone: its agent does nothing more, and says nothing about it."""
        if self._idle is not None and name in self._idle:
            self._idle.remove(name)
        if name in self._agents:
            self._agents[name].cancel()
        if self._leases is not None:
            await self._leases.say_last_word(name)

    def forget_servers(self) -> None:
        """In a forked process: those that were started answer for the other's nodes."""
        self._servers.forget()

    def _server_of(self, name: str) -> "KubeletServer":
        from sampan.kubelet.server.access import ServerAccess
        from sampan.kubelet.server.http_server import KubeletServer
        from sampan.kubelet.server.lookup import RuntimeLookup

        assert self._boots is not None
        kubelet, runtime = self._kubelets[name], self.runtimes[name]
        client = self._boots.clients(f"system:node:{name}")
        return KubeletServer(
            RuntimeLookup(kubelet.pods, runtime), runtime, clock=self._clock,
            metrics=self._boots.metrics, healthy=kubelet.healthy, agent=lambda: kubelet,
            access=ServerAccess(name, client, self._clock), pretends=True,
        )  # fmt: skip

    def hurry(self) -> None:
        """Nothing takes long here."""

    async def stop(self) -> None:
        for name, kubelet in self._kubelets.items():
            if kubelet.shuts_down_gracefully and self._idle is not None:
                self._idle.leave(name)  # it has to say so
        await all_of(kubelet.shut_down() for kubelet in self._kubelets.values())
        await self._drivers.stop()
        await self._tasks.stop()
        await self._servers.stop()
        if self._objects is not None:
            await self._objects.stop()


@dataclass(frozen=True, slots=True)
class _Boot:
    """What a node's agent starts with, again and again."""

    clients: ClientMaker
    metrics: Metrics
    shared: "SharedSources"
    pods: Informer
    nodes: Informer
    scenario: "Scenario"

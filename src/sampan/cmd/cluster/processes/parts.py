"""The parts of `sampan up --processes`: what each process is made of.

Job: settings and the parent's words → one part, started and stopped.
Invariant: the work is that of all_in_one.py; only the way to the API is another.
"""

import io
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sampan.api.objects import Obj
from sampan.apiserver.authn.tokens import TokenSigner
from sampan.client.delegated_access import DelegatedAccess
from sampan.client.trace_delivery import TraceDelivery
from sampan.cmd.cluster import pki, rotation
from sampan.cmd.cluster.choose_nodes import choose_nodes
from sampan.cmd.cluster.component_server import ComponentServer, zpages_of
from sampan.cmd.cluster.control_plane.cluster_api import ClusterApi, NodesAround
from sampan.cmd.cluster.control_plane.control_loops import (
    CONTROLLERS_USER,
    SCHEDULER_USER,
    ControlLoops,
)
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node_accounts import INGRESS_USER
from sampan.cmd.cluster.nodes import Nodes, NodeSetup, Together, own_identity
from sampan.cmd.cluster.process import Parts, process_metrics
from sampan.cmd.cluster.processes import identities
from sampan.cmd.cluster.processes.handover import Handover
from sampan.cmd.cluster.processes.local_api import SOCKET, LocalApi, LocalEdge
from sampan.cmd.cluster.processes.local_sockets import listening_socket
from sampan.cmd.cluster.processes.peer_requests import (
    MEMORY,
    PLACE,
    WHY,
    Answer,
    PeerClient,
    PeerServer,
)
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.served_api import ServedApi
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.flags.control_plane_flags import CONTROLLERS_PORT, SCHEDULER_PORT
from sampan.cmd.settings import ServingChoices, UpSettings
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.origin import Origin
from sampan.core.http.server import bound_socket
from sampan.core.tasks import Tasks, all_of
from sampan.core.telemetry.traces import NO_TRACES, Outbox, Traces
from sampan.core.tls import server_context

if TYPE_CHECKING:
    from sampan.cmd.cluster.control_plane.ingress_part import IngressPart


@dataclass(frozen=True, slots=True)
class PartContext:
    """What every part gets."""

    settings: UpSettings
    data: DataDir
    words: Handover
    progress: Progress
    clock: Clock

    @property
    def simulates(self) -> bool:
        return self.words.runtime == "simulated"

    def nodes(self, progress: Progress) -> Nodes:
        identity = own_identity(self.settings)
        setup = NodeSetup(self.settings, self.data, identity, progress, self.clock)
        return choose_nodes(setup, random.Random())


def part_of(name: str, given: PartContext) -> Parts:
    ranges = chosen_ranges(given.settings.ranges, given.data.record())
    settings = replace(given.settings, ranges=ranges, runtime=given.words.runtime)
    given = replace(given, settings=settings)
    if name == identities.API_SERVER:
        return ApiServerPart(given)
    link = Link(name, given)
    if name == identities.SCHEDULER:
        return SchedulerPart(given, link)
    return NodesPart(given, link) if name == identities.NODES else ControllersPart(given, link)


class Link:
    """A part's way to the API: clients, and where its traces go."""

    def __init__(self, part: str, given: PartContext) -> None:
        self._clock, self._tasks = given.clock, Tasks(part)
        secret = given.words.secrets[part]
        self.api = LocalApi(given.data.sockets, part, secret, given.clock)
        self._outbox = Outbox()
        traces = Traces(given.clock, outbox=self._outbox) if given.settings.tracing else NO_TRACES
        self.metrics = process_metrics(traces)
        self._part, self._sockets = part, given.data.sockets
        self._flags = given.settings.flags
        self._answers: PeerServer | None = None
        self._server: ComponentServer | None = None
        self._ca = str(pki.Pki(given.data.pki).ca)

    async def start(self, user: str, answers: Mapping[str, Answer] | None = None) -> None:
        """`user`: who delivers what was traced; `answers`: what the API server asks this part,
        besides what all are asked."""
        known = {MEMORY: self._memory, **(answers or {})}
        self._answers = PeerServer(self._sockets, self._part, known)
        await self._answers.start()
        delivery = TraceDelivery(self.api.client_of(user), self._outbox, self._clock)
        self._tasks.supervise("traces", delivery.run)

    async def serve(self, user: str, port: int) -> str:
        """Health and metrics, as the component of a cluster of several machines has them: on the
        port where everybody looks, or on any where that is another's; says where. `user`: who asks
        the API what a caller may."""
        choices = ServingChoices(client_ca=self._ca)
        access = DelegatedAccess(self.api.client_of(user), self._clock)
        self._server = ComponentServer(choices, access, {}, self.metrics, self._clock)
        self._server.zpages = zpages_of(user.rpartition(":")[2], self._flags, self._clock)
        try:
            listening = bound_socket(choices.bind_address, port)
        except OSError:
            listening = bound_socket(choices.bind_address, 0)
        told = f"metrics at https://{choices.bind_address}:{listening.getsockname()[1]}"
        await self._server.start_on(listening)
        return told

    def supervise(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.supervise(name, work)

    async def _memory(self, _rest: str) -> Obj:
        return await self.metrics.memory.document()

    async def close(self) -> None:
        await self._tasks.stop()
        if self._answers is not None:
            await self._answers.stop()
        if self._server is not None:
            await self._server.stop()
        await self.api.close()


class ApiServerPart:
    def __init__(self, given: PartContext) -> None:
        self._given = given
        traces = Traces(given.clock) if given.settings.tracing else NO_TRACES
        self._api = ServedApi(given.clock, process_metrics(traces))
        self._cluster_api: ClusterApi | None = None
        self._to = {
            part: PeerClient(given.data.sockets, part)
            for part in (identities.SCHEDULER, identities.CONTROLLERS, identities.NODES)
        }

    async def start(self) -> None:
        given = self._given
        nodes = given.nodes(Progress(io.StringIO(), given.clock))  # the other process says it
        around = NodesAround(
            own_identity(given.settings),
            await nodes.gateways(),
            nodes.mount_volumes,
            self._to[identities.NODES].place_of if given.simulates else nodes.place_of,
        )
        api = self._cluster_api = ClusterApi(
            given.settings, given.data, given.progress, self._api, around
        )
        for part, questions in self._to.items():
            self._api.also_weigh(part, partial(questions.ask, MEMORY, ""))
        server = await api.start()
        if given.settings.scheduler:
            server.add_document("/sampan/v1/why/", self._why)
        assert self._api.handler is not None
        edge = LocalEdge(server, self._api.handler, given.words.secrets)
        listening = listening_socket(given.data.sockets, SOCKET)
        await self._api.listen_locally(listening, edge.reply, edge.wants_body)

    async def _why(self, rest: str) -> Obj | None:
        return await self._to[identities.SCHEDULER].ask(WHY, rest)

    async def stop(self) -> None:
        if self._cluster_api is not None:
            await self._cluster_api.stop()
        await all_of(questions.close() for questions in self._to.values())

    def hurry(self) -> None:
        """Nothing takes long here."""


def _duties(given: PartContext, link: Link) -> ControlLoops:
    shared = given.settings.store.startswith("etcd")
    return ControlLoops(
        given.settings, link.api.client_of, given.clock, link.metrics, random.Random(), shared
    )


class SchedulerPart:
    def __init__(self, given: PartContext, link: Link) -> None:
        self._given, self._link = given, link

    async def start(self) -> None:
        from sampan.cmd.cluster.schedulers import configuration_in, why_of

        given = self._given
        with given.progress.step("scheduler") as step:
            configuration = configuration_in(given.settings.scheduler_config)
            scheduler, work = _duties(given, self._link).scheduling(configuration)
            await self._link.start(SCHEDULER_USER, {WHY: why_of(scheduler)})
            self._link.supervise("kube-scheduler", work)
            step.detail = await self._link.serve(SCHEDULER_USER, SCHEDULER_PORT)

    async def stop(self) -> None:
        await self._link.close()

    def hurry(self) -> None:
        """Nothing takes long here."""


class ControllersPart:
    def __init__(self, given: PartContext, link: Link) -> None:
        self._given, self._link = given, link
        self._ingress: IngressPart | None = None

    async def start(self) -> None:
        given = self._given
        with given.progress.step("controllers") as step:
            keys = pki.Pki(given.data.pki)
            sign = TokenSigner(keys.token_key.read_bytes(), "").legacy_token
            duties = _duties(given, self._link)
            work = duties.controlling(keys, sign, gives_ranges=not given.simulates)
            await self._link.start(CONTROLLERS_USER)
            self._link.supervise("kube-controller-manager", work)
            step.detail = await self._link.serve(CONTROLLERS_USER, CONTROLLERS_PORT)
        if given.settings.ingress is not None:
            await self._start_ingress(given)

    async def _start_ingress(self, given: PartContext) -> None:
        from sampan.cmd.cluster.control_plane.ingress_part import IngressPart

        ingress = self._ingress = IngressPart(given.settings, given.data, bound_socket)
        client = self._link.api.client_of(INGRESS_USER)
        address = own_identity(given.settings).address
        await ingress.start(client, address, given.progress, given.clock)

    async def stop(self) -> None:
        if self._ingress is not None:
            await self._ingress.stop()
        await self._link.close()

    def hurry(self) -> None:
        """Nothing takes long here."""


class NodesPart:
    """Every node of this cluster that is here: the machine, or all those that are simulated."""

    def __init__(self, given: PartContext, link: Link) -> None:
        self._given, self._link = given, link
        self._nodes: Nodes | None = None

    async def start(self) -> None:
        given, link = self._given, self._link
        nodes = self._nodes = given.nodes(given.progress)
        await nodes.prepare()
        nodes.act_together(Together(link.api.renew, link.api.register, link.api.report))
        keys = pki.Pki(given.data.pki)
        pair = keys.certificate("kubelet"), keys.key("kubelet")
        tls = server_context(*pair, keys.ca)
        link.supervise("certificate", lambda: rotation.keep_loaded(tls, pair, given.clock))
        if isinstance(nodes, SimulatedNodes):
            await link.start(CONTROLLERS_USER, {PLACE: self._place})
        else:
            await link.start(f"system:node:{own_identity(given.settings).name}")
        await nodes.start(link.api.client_of, link.metrics, tls)

    async def _place(self, host: str) -> Obj | None:
        assert self._nodes is not None
        place = await self._nodes.place_of(Origin("https", host, 0))
        return None if place.host == host else {"host": place.host, "port": place.port}

    async def stop(self) -> None:
        if self._nodes is not None:
            await self._nodes.stop()
        await self._link.close()

    def hurry(self) -> None:
        if self._nodes is not None:
            self._nodes.hurry()

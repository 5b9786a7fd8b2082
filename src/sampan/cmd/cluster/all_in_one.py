"""A whole cluster in one process: every part built, started in order, and stopped in reverse.

Job: settings → parts. Nothing here decides anything about pods.
Invariant: parts get clients, never each other; each acts under an identity of its own.
Invariant: what is not loaded before a cluster that was up before is Ready again needs no client of
    it to wait: scheduler and controllers go on from objects, whenever they come.
Owner: `sampan up`.
"""

import asyncio
import contextlib
import random
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from sampan.api.errors import NotFound
from sampan.api.objects import Obj
from sampan.api.resources import NODES, SERVICE_ACCOUNTS
from sampan.api.validation import kinds
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.server import ApiServer
from sampan.client.contract import Client
from sampan.client.inprocess import Backend, InProcessClient
from sampan.cmd.cluster import pki
from sampan.cmd.cluster.choose_nodes import asked_ranges, choose_nodes
from sampan.cmd.cluster.control_plane.cluster_api import ClusterApi, NodesAround
from sampan.cmd.cluster.control_plane.control_loops import ControlLoops, check_controllers
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node_accounts import INGRESS_USER, NETWORK_USER
from sampan.cmd.cluster.nodes import (
    Again,
    ClientMaker,
    NodeIdentity,
    Nodes,
    NodeSetup,
    NoNodes,
    Together,
    own_identity,
    part_of_cluster,
)
from sampan.cmd.cluster.process import process_metrics
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.served_api import ServedApi, Surroundings
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock
from sampan.core.http.server import bound_socket
from sampan.core.tasks import Tasks, all_of
from sampan.core.telemetry.traces import NO_TRACES, Traces

if TYPE_CHECKING:
    from sampan.cmd.cluster.control_plane.ingress_part import IngressPart
    from sampan.cmd.rootless.outside import Outside
    from sampan.controllers.runner import ControllerRunner
    from sampan.scheduler.loop import Scheduler
    from sampan.scheduler.settings import Configuration

# Who is waited for by `start`: the API server alone, the nodes too, or scheduler and controllers as
# well. The others come with `start_rest`.
Waits = Literal["for the API", "for nodes", "for all"]
SETTLE_SECONDS = 2.0


class AllInOne:
    def __init__(
        self,
        settings: UpSettings,
        data: DataDir,
        progress: Progress,
        clock: Clock,
        rng: random.Random | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        """`rng`: whoever gives one can have the same history again."""
        self._settings, self._data, self._progress, self._clock = settings, data, progress, clock
        self._rng, self._surroundings = rng or random.Random(), surroundings
        self._metrics = process_metrics(Traces(clock) if settings.tracing else NO_TRACES)
        self._tasks = Tasks("sampan")
        self._api = ServedApi(clock, self._metrics, rng, surroundings)
        self._cluster_api: ClusterApi | None = None
        self.nodes: Nodes | None = None
        self._server: ApiServer | None = None
        self._scheduler_configuration: Configuration | None = None  # where a file was given
        self._scheduler: Scheduler | None = None
        self._scheduler_there = asyncio.Event()
        self._duties: ControlLoops | None = None  # once they are done
        self._runner: ControllerRunner | None = None
        self._nodes_started = False
        self.waits: Waits = "for all"
        self._outside: Outside | None = None
        self._again: Again | None = None
        self._ingress: IngressPart | None = None

    def start_others_by(self, again: Again) -> None:
        """Processes of this cluster: of nodes that are not this machine itself."""
        self._again = again

    def listen_by(self, outside: "Outside") -> None:
        """On the machine's network, where this process is in one of its own."""
        self._outside = outside

    async def start(self) -> None:
        """Returns when the API answers and every node is Ready, or earlier as `waits` has it;
        raises CannotStart."""
        record = self._data.record()
        ranges = chosen_ranges(asked_ranges(self._settings, record), record)
        settings = self._settings = replace(self._settings, ranges=ranges)
        check_controllers(settings)
        identity = own_identity(settings)
        if settings.scheduler_config:
            from sampan.cmd.cluster.schedulers import configuration_in

            # Read before anything is started: a mistake in it is said at once.
            self._scheduler_configuration = configuration_in(settings.scheduler_config)
        bind = self._outside.bound_socket if self._outside is not None else bound_socket
        if settings.ingress is not None:
            from sampan.cmd.cluster.control_plane.ingress_part import IngressPart

            self._ingress = IngressPart(settings, self._data, bind)
        setup = NodeSetup(settings, self._data, identity, self._progress, self._clock, self._again)
        nodes = self.nodes = choose_nodes(setup, self._rng)
        gateways = await nodes.gateways()
        identity = nodes.identity
        around = NodesAround(identity, gateways, nodes.mount_volumes, nodes.place_of, bind)
        # A real node's runtime takes longest and needs nothing from the rest: both start at once.
        await all_of([nodes.prepare(), self._start_api(around)])
        if self._ingress is not None:
            await self._start_ingress(self._ingress, identity)
        if self.waits == "for the API":
            return
        if self.waits == "for all" or not await self._was_up_before():
            self._start_duties()
        await self._start_nodes()

    async def _start_ingress(self, ingress: "IngressPart", identity: NodeIdentity) -> None:
        assert self._server is not None
        client = self._client_maker(self._server)(INGRESS_USER)
        await ingress.start(client, identity.address, self._progress, self._clock)

    async def start_rest(self) -> None:
        """What `start` did not wait for, loaded while clients are answered already."""
        if self._duties is None:
            await asyncio.to_thread(_load_parts)
            self._start_duties()
        if not self._nodes_started:
            await self._start_nodes()

    async def _was_up_before(self) -> bool:
        """What pods and the node itself would wait for was made by an earlier start."""
        admin = self.admin()
        try:
            await admin.get(SERVICE_ACCOUNTS, "default", "default")
            names = self.nodes.real_names if self.nodes is not None else ()
            found = [await admin.get(NODES, "", name) for name in names]
        except NotFound:
            return False
        return all((node.get("spec") or {}).get("podCIDRs") for node in found)

    async def _start_nodes(self) -> None:
        assert self.nodes is not None
        assert self._server is not None
        assert self._cluster_api is not None
        self._nodes_started = True
        server = self._server
        self.nodes.act_together(
            Together(
                server.renew_leases, server.register_nodes, server.report_nodes, server.add_action
            )
        )
        if isinstance(self.nodes, SimulatedNodes) and self._surroundings is not None:
            leases = self.nodes.leases_on_demand()
            if leases is not None:
                self._surroundings.renew_on_demand(leases)
        clients, tls = self._client_maker(self._server), self._cluster_api.tls_of_node()
        await self.nodes.start(clients, self._metrics, tls)
        if self._outside is not None:
            self._publish_ports(self._outside, self.nodes.identity, clients(NETWORK_USER))

    def _publish_ports(self, outside: "Outside", identity: NodeIdentity, client: Client) -> None:
        from sampan.cmd.rootless.published_ports import PublishedPorts

        ports = PublishedPorts(outside, self._settings.bind_address, identity.address, self._clock)
        self._tasks.supervise("published ports", lambda: ports.run(client, identity.name))

    async def stop(self) -> None:
        """readyz fails first; then whoever calls the API goes, then the API, then the store."""
        self._api.wind_down()
        if self._surroundings is not None:
            self._surroundings.let_go()
        if self._ingress is not None:
            await self._ingress.stop()
        if self.nodes is not None:
            await self.nodes.stop()
        await self._let_controllers_finish()
        await self._tasks.stop()
        if self._cluster_api is not None:
            await self._cluster_api.stop()

    def _note_runner(self, runner: "ControllerRunner") -> None:
        self._runner = runner

    async def _let_controllers_finish(self) -> None:
        """Of a real node's pods, which have just ended: what is kept says so."""
        if self._runner is None or isinstance(self.nodes, SimulatedNodes | NoNodes):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._runner.settled()

    def admin(self) -> Client:
        """The cluster as its administrator sees it from inside this process."""
        assert self._server is not None, "it was started before"
        return InProcessClient(self._server.as_user(User("kubernetes-admin", (MASTERS,))))

    def plugin_costs(self) -> dict[str, tuple[int, float]]:
        """By plugin and extension point: how often it was asked, and for how many seconds."""
        from sampan.cmd.cluster.schedulers import plugin_costs

        return plugin_costs(self._metrics)

    def hurry(self) -> None:
        """The user asked twice: give containers no more time."""
        if self.nodes is not None:
            self.nodes.hurry()

    async def _start_api(self, around: NodesAround) -> None:
        self._cluster_api = ClusterApi(
            self._settings, self._data, self._progress, self._api, around
        )
        self._server = await self._cluster_api.start()
        if self._settings.scheduler:
            self._server.add_document("/sampan/v1/why/", self._why)

    def _start_duties(self) -> None:
        assert self._server is not None
        assert self._cluster_api is not None
        duties = self._duties = ControlLoops(
            self._settings, self._client_maker(self._server), self._clock, self._metrics,
            self._rng, self._cluster_api.shared, begun=self._note_runner,
        )  # fmt: skip
        if self._settings.scheduler:
            self._start_scheduler(duties)
        simulated = isinstance(self.nodes, SimulatedNodes)
        if isinstance(self.nodes, SimulatedNodes):
            duties = replace(duties, attended=self.nodes.attends)
        sign = self._server.sign_account_token
        work = duties.controlling(pki.Pki(self._data.pki), sign, gives_ranges=not simulated)
        self._tasks.supervise("kube-controller-manager", work)

    def _start_scheduler(self, duties: ControlLoops) -> None:
        from sampan.cmd.cluster.schedulers import configuration_in

        configuration = self._scheduler_configuration or configuration_in("")
        self._scheduler, work = duties.scheduling(configuration)
        self._scheduler_there.set()
        self._tasks.supervise("kube-scheduler", work)

    async def _why(self, path: str) -> Obj | None:
        """The scheduler's record of a pod; who asks first waits for it."""
        from sampan.cmd.cluster.schedulers import why_of

        await self._scheduler_there.wait()
        assert self._scheduler is not None
        return await why_of(self._scheduler)(path)

    def _client_maker(self, server: ApiServer) -> ClientMaker:
        def client_of(name: str) -> Client:
            backend: Backend = server.as_user(part_of_cluster(name))
            if self._surroundings is not None:
                backend = self._surroundings.between(name, backend)
            return InProcessClient(backend)

        return client_of


def _load_parts() -> None:
    """What is imported when it starts, at the latest."""
    for module in (
        "controllers.catalog", "cmd.cluster.schedulers", "kubelet.kubelet",
        "apiserver.subresources.handlers",
    ):  # fmt: skip
        import_module(f"sampan.{module}")
    kinds.load_all()

"""A whole cluster in one process: every part built, started in order, and stopped in reverse.

Job: settings → parts. Nothing here decides anything about pods.
Invariant: parts get clients, never each other; each acts under an identity of its own.
Owner: `sampan up`.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.apiserver.authn.user import MASTERS, User, component
from sampan.apiserver.server import ApiServer
from sampan.client.contract import Client
from sampan.client.inprocess import Backend, InProcessClient
from sampan.cmd.cluster import pki
from sampan.cmd.cluster.choose_nodes import choose_nodes
from sampan.cmd.cluster.control_plane.cluster_api import ClusterApi, NodesAround
from sampan.cmd.cluster.control_plane.duties import Duties, check_controllers
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node_accounts import NETWORK_USER
from sampan.cmd.cluster.nodes import ClientMaker, NodeIdentity, Nodes, Together, own_identity
from sampan.cmd.cluster.process import process_metrics
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.served_api import ServedApi, Surroundings
from sampan.cmd.cluster.simulated_nodes import SimulatedNodes
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock
from sampan.core.http.server import bound_socket
from sampan.core.tasks import Tasks, all_of
from sampan.core.telemetry.traces import NO_TRACES, Traces

if TYPE_CHECKING:
    from sampan.cmd.rootless.outside import Outside
    from sampan.scheduler.settings import Configuration


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
        self.on_answer: Callable[[], None] | None = None  # told when the API answers, before nodes
        self._outside: Outside | None = None

    def listen_by(self, outside: "Outside") -> None:
        """On the machine's network, where this process is in one of its own."""
        self._outside = outside

    async def start(self) -> None:
        """Returns when the API answers and every node is Ready; raises CannotStart."""
        ranges = chosen_ranges(self._settings.ranges, self._data.record())
        settings = self._settings = replace(self._settings, ranges=ranges)
        check_controllers(settings)
        identity = own_identity(settings)
        if settings.scheduler_config:
            from sampan.cmd.cluster.schedulers import configuration_in

            # Read before anything is started: a mistake in it is said at once.
            self._scheduler_configuration = configuration_in(settings.scheduler_config)
        self.nodes = choose_nodes(
            settings, self._data, identity, self._progress, self._clock, self._rng
        )
        nodes = self.nodes
        gateways = await nodes.gateways()
        bind = self._outside.bound_socket if self._outside is not None else bound_socket
        around = NodesAround(identity, gateways, nodes.mount_volumes, nodes.place_of, bind)
        # A real node's runtime takes longest and needs nothing from the rest: both start at once.
        await all_of([nodes.prepare(), self._start_control_plane(around)])
        assert self._server is not None
        assert self._cluster_api is not None
        nodes.act_together(Together(self._server.renew_leases, self._server.register_nodes))
        clients, tls = self._client_maker(self._server), self._cluster_api.tls_of_node()
        await nodes.start(clients, self._metrics, tls)
        if self._outside is not None:
            self._publish_ports(self._outside, identity, clients(NETWORK_USER))

    def _publish_ports(self, outside: "Outside", identity: NodeIdentity, client: Client) -> None:
        from sampan.cmd.rootless.published_ports import PublishedPorts

        ports = PublishedPorts(outside, self._settings.bind_address, identity.address)
        self._tasks.supervise(
            "published ports", lambda: ports.run(client, identity.name, self._clock)
        )

    async def stop(self) -> None:
        """readyz fails first; then whoever calls the API goes, then the API, then the store."""
        self._api.wind_down()
        if self._surroundings is not None:
            self._surroundings.let_go()
        if self.nodes is not None:
            await self.nodes.stop()
        await self._tasks.stop()
        if self._cluster_api is not None:
            await self._cluster_api.stop()

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

    async def _start_control_plane(self, around: NodesAround) -> None:
        self._cluster_api = ClusterApi(
            self._settings, self._data, self._progress, self._api, around
        )
        self._server = server = await self._cluster_api.start()
        if self.on_answer is not None:
            self.on_answer()
            # Clients are there already, and are answered while the rest is loaded.
            await asyncio.to_thread(_load_parts)
        clients = self._client_maker(server)
        duties = Duties(
            self._settings, clients, self._clock, self._metrics, self._rng,
            self._cluster_api.shared,
        )  # fmt: skip
        if self._settings.scheduler:
            self._start_scheduler(server, duties)
        simulated = isinstance(self.nodes, SimulatedNodes)
        work = duties.controlling(
            pki.Pki(self._data.pki), server.sign_account_token, gives_ranges=not simulated
        )
        self._tasks.supervise("kube-controller-manager", work)

    def _start_scheduler(self, server: ApiServer, duties: Duties) -> None:
        from sampan.cmd.cluster.schedulers import configuration_in, why_of

        configuration = self._scheduler_configuration or configuration_in("")
        scheduler, work = duties.scheduling(configuration)
        server.add_document("/sampan/v1/why/", why_of(scheduler))
        self._tasks.supervise("kube-scheduler", work)

    def _client_maker(self, server: ApiServer) -> ClientMaker:
        def client_of(name: str) -> Client:
            backend: Backend = server.as_user(component(name))
            if self._surroundings is not None:
                backend = self._surroundings.between(name, backend)
            return InProcessClient(backend)

        return client_of


def _load_parts() -> None:
    """What is imported when it starts, at the latest."""
    for module in ("controllers.catalog", "cmd.cluster.schedulers", "kubelet.kubelet"):
        import_module(f"sampan.{module}")

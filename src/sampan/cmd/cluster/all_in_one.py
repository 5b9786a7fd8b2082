"""A whole cluster in one process: every part built, started in order, and stopped in reverse.

Job: settings → parts. Nothing here decides anything about pods.
Invariant: parts get clients, never each other; each acts under an identity of its own.
Owner: `sampan up`.
"""

import errno
import functools
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.apiserver.authn.settings import ProxyClientSettings
from sampan.apiserver.authn.user import MASTERS, User, component
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.inprocess import InProcessClient
from sampan.client.kubeconfig import Connection
from sampan.client.kubeconfig_file import write_kubeconfig
from sampan.client.leader_election import Elector, LeaseSettings
from sampan.cmd.cluster import contexts, machine, pki, rotation
from sampan.cmd.cluster.addresses import advertise_address, opening, reachable, server_names, url_of
from sampan.cmd.cluster.choose_nodes import choose_nodes
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node.cluster_configuration import ClusterConfiguration, publish
from sampan.cmd.cluster.nodes import ClientMaker, NodeIdentity, Nodes
from sampan.cmd.cluster.process import process_metrics
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.served_api import ServedApi, why_not_bound
from sampan.cmd.cluster.simulated_nodes import SimulatedNodes
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.security_settings import server_settings
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock, SystemClock
from sampan.core.http_server import bound_socket
from sampan.core.tasks import Tasks, all_of
from sampan.core.telemetry.traces import NO_TRACES, Traces
from sampan.core.tls import client_context, server_context
from sampan.version import VERSION

if TYPE_CHECKING:
    from sampan.cmd.simulation.virtual_time import VirtualTime
    from sampan.scheduler.settings import Configuration


QUIET_GRACE_SECONDS = 3 * 86400.0  # of nodes whose heartbeats come once a day


class AllInOne:
    def __init__(
        self,
        settings: UpSettings,
        data: DataDir,
        progress: Progress,
        clock: Clock,
        rng: random.Random | None = None,
        virtual: "VirtualTime | None" = None,
    ) -> None:
        """`rng`: whoever gives one can have the same history again; `virtual`: where the clock is
        moved by others."""
        self._settings, self._data, self._progress, self._clock = settings, data, progress, clock
        self._rng, self._virtual = rng or random.Random(), virtual
        self._machine_clock = SystemClock()  # clients look at certificates by their own
        self._metrics = process_metrics(Traces(clock) if settings.tracing else NO_TRACES)
        self._tasks = Tasks("sampan")
        self._undo = AsyncExitStack()
        self._api = ServedApi(clock, self._metrics, rng, virtual)
        self._pki = pki.Pki(data.pki)
        self._served: list[rotation.Served] = []
        self._url = ""
        self._gateways: tuple[str, ...] = ()  # where the pods of this machine come to, if anywhere
        self._nodes: Nodes | None = None
        self._server: ApiServer | None = None
        self._scheduler_configuration: Configuration | None = None  # where a file was given
        self._shared = False  # other processes use the same store

    async def start(self) -> None:
        """Returns when the API answers and every node is Ready; raises CannotStart."""
        ranges = chosen_ranges(self._settings.ranges, self._data.record())
        settings = self._settings = replace(self._settings, ranges=ranges)
        self._check_controllers()
        identity = NodeIdentity(
            name=settings.node_name or machine.node_name(socket.gethostname()),
            addresses=machine.node_addresses(settings.node_ips, ranges.families),
        )
        if settings.scheduler_config:
            from sampan.cmd.cluster.schedulers import configuration_in

            # Read before anything is started: a mistake in it is said at once.
            self._scheduler_configuration = configuration_in(settings.scheduler_config)
        self._nodes = choose_nodes(
            settings, self._data, identity, self._progress, self._clock, self._rng
        )
        self._gateways = await self._nodes.gateways()
        # A real node's runtime takes longest and needs nothing from the rest: both start at once.
        await all_of([self._nodes.prepare(), self._start_control_plane(identity)])
        assert self._server is not None
        self._nodes.renew_together(self._server.renew_leases)
        await self._nodes.start(
            self._client_maker(self._server), self._metrics, self._tls_of_node()
        )

    async def stop(self) -> None:
        """readyz fails first; then whoever calls the API goes, then the API, then the store."""
        self._api.wind_down()
        if self._virtual is not None:
            self._virtual.let_go()
        if self._nodes is not None:
            await self._nodes.stop()
        await self._tasks.stop()
        await self._undo.aclose()

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
        if self._nodes is not None:
            self._nodes.hurry()

    async def _start_control_plane(self, identity: NodeIdentity) -> None:
        self._ensure_certificates(identity)
        self._server = await self._start_api_server(identity)
        if self._settings.scheduler:
            self._start_scheduler(self._server)
        self._start_controllers(self._server)

    def _ensure_certificates(self, identity: NodeIdentity) -> None:
        with self._progress.step("certificates") as step:
            bind = self._settings.bind_address
            wanted = pki.leaves(
                [
                    *server_names(
                        bind, identity.name, identity.addresses, self._settings.ranges.service
                    ),
                    *self._gateways,
                ],
                identity.name,
                [identity.name, *identity.addresses, "localhost", "127.0.0.1"],
            )
            made = pki.ensure(self._data.pki, wanted, self._machine_clock)
            step.detail = f"{made} made" if made else "kept"
        self._tasks.supervise(
            "certificates",
            lambda: rotation.keep_fresh(
                self._data.pki, wanted, lambda: self._served,
                lambda: self._write_kubeconfig(self._url, use=False), self._machine_clock,
            ),
        )  # fmt: skip

    async def _start_api_server(self, identity: NodeIdentity) -> ApiServer:
        with self._progress.step("store") as step:
            url = self._settings.store or f"sqlite:///{self._data.store}"
            self._undo.push_async_callback(self._api.stop)
            self._api.export_traces(self._settings.tracing_config_file)
            store = await self._api.open(url)
            self._shared = store.shared
            step.detail = f"{url.split(':')[0]}, revision {store.revision}"
        with self._progress.step("API server") as step:
            listening = _listen(self._settings, self._data)
            port = listening.getsockname()[1]
            advertised = advertise_address(
                self._settings.bind_address, identity.address, next(iter(self._gateways), "")
            )
            settings = self._api_server_settings(advertised, port)
            sockets = [listening, *self._for_pods(advertised, port)]
            server = await self._api.serve(store, settings, sockets, self._server_tls())
            self._url = step.detail = url_of(reachable(self._settings.bind_address), port)
        if opened := opening(self._settings.bind_address, port):
            self._progress.warn(opened)
        self._write_kubeconfig(self._url)
        ranges = self._settings.ranges
        self._data.remember(
            port=port, version=VERSION,
            cluster_cidr=",".join(ranges.cluster), service_cidr=",".join(ranges.service),
        )  # fmt: skip
        return server

    def _for_pods(self, advertised: str, port: int) -> list[socket.socket]:
        """Where the server is for this machine only, its pods find it at their gateway; where it is
        for everybody, IPv6 is not left out."""
        more = [advertised] if advertised in self._gateways else []
        if self._settings.bind_address == "0.0.0.0" and "ipv6" in self._settings.ranges.families:
            more.append("::")
        try:
            return [bound_socket(address, port, only_its_family=True) for address in more]
        except OSError as error:
            self._progress.warn(f"pods cannot reach the API at {advertised}:{port}: {error}")
            return []

    def _api_server_settings(self, address: str, port: int) -> ApiServerSettings:
        return ApiServerSettings(
            service_cidrs=self._settings.ranges.service,
            advertise_address=address,
            advertise_port=port,
            # On a virtual clock nobody loses a connection, and an hour is nothing.
            watch_bookmark_seconds=60.0 if self._virtual is None else 3600.0,
            token_signing_key_pem=self._pki.token_key.read_bytes(),
            ca_bundle_pem=self._pki.ca.read_text(),
            mount_service_account_tokens=self._nodes is not None and self._nodes.mount_volumes,
            kubelet_place=self._nodes.place_of if self._nodes is not None else None,
            kubelet_tls=self._tls_to_nodes,
            proxy_client=ProxyClientSettings(
                str(self._pki.certificate(pki.FRONT_PROXY_CLIENT)),
                str(self._pki.key(pki.FRONT_PROXY_CLIENT)),
                self._pki.certificate(pki.FRONT_PROXY_CA).read_text(),
                pki.FRONT_PROXY_CLIENT,
            ),
            **server_settings(self._settings.security, self._pki.ca.read_bytes()),
        )

    def _server_tls(self) -> ssl.SSLContext:
        context = self._tls("apiserver")
        if self._settings.security.proxy_ca_file:
            context.load_verify_locations(self._settings.security.proxy_ca_file)
        return context

    def _tls_of_node(self) -> ssl.SSLContext:
        return self._tls("kubelet")

    def _tls_to_nodes(self) -> ssl.SSLContext:
        """With what the API server shows to nodes, renewed as what it shows to its clients."""
        file = "apiserver-kubelet-client"
        context = client_context(
            ca_path=self._pki.ca,
            cert_path=self._pki.certificate(file),
            key_path=self._pki.key(file),
        )
        self._served.append(rotation.Served(context, file))
        return context

    def _tls(self, file: str) -> ssl.SSLContext:
        context = server_context(self._pki.certificate(file), self._pki.key(file), self._pki.ca)
        self._served.append(rotation.Served(context, file))
        return context

    def _write_kubeconfig(self, url: str, *, use: bool = True) -> None:
        admin = Connection(
            url,
            ca=self._pki.ca.read_bytes(),
            certificate=self._pki.certificate("admin").read_bytes(),
            key=self._pki.key("admin").read_bytes(),
        )
        path = self._data.kubeconfig
        try:
            write_kubeconfig(path, admin)
            if self._settings.kubeconfig:
                path = Path(self._settings.kubeconfig).absolute()
                contexts.put(self._data, path, admin, use=use)
        except OSError as error:
            raise CannotStart(f"cannot write the kubeconfig {path}: {error}") from error

    def _client_maker(self, server: ApiServer) -> ClientMaker:
        return lambda name: InProcessClient(server.as_user(component(name)))

    def _start_scheduler(self, server: ApiServer) -> None:
        from sampan.cmd.cluster.schedulers import (
            configuration_in,
            lease_of,
            measured,
            scheduler_of,
            why_of,
        )

        client = self._client_maker(server)("system:kube-scheduler")
        configuration = self._scheduler_configuration or configuration_in("")
        if self._settings.measures_plugins:
            configuration = measured(configuration, self._metrics)
        scheduler = scheduler_of(configuration, client, self._clock, self._metrics, self._rng)
        server.add_document("/sampan/v1/why/", why_of(scheduler))
        if configuration.election.elects:
            lease = lease_of(configuration.election, self._identity)
            self._work("kube-scheduler", client, scheduler.run, lease)
        else:
            self._tasks.supervise("kube-scheduler", scheduler.run)

    def _start_controllers(self, server: ApiServer) -> None:
        clients = self._client_maker(server)
        client = clients("system:kube-controller-manager")
        self._work("kube-controller-manager", client, lambda: self._control(server, clients))

    def _check_controllers(self) -> None:
        from sampan.controllers.catalog import ControllerSettings, chosen_controllers
        from sampan.controllers.controller import UnknownController

        try:
            chosen_controllers(ControllerSettings(""), self._settings.controllers)
        except UnknownController as error:
            raise CannotStart(f"--controllers: {error}") from error

    async def _control(self, server: ApiServer, clients: ClientMaker) -> None:
        from sampan.controllers.access.csr_signing import Ca
        from sampan.controllers.catalog import ControllerSettings, chosen_controllers
        from sampan.controllers.identities import user_name
        from sampan.controllers.runner import ControllerRunner

        client = clients("system:kube-controller-manager")
        informers = Informers(client, clock=self._clock, rng=self._rng)
        ca = Ca(self._pki.ca.read_bytes(), self._pki.ca_key.read_bytes())
        root_ca, sign = self._pki.ca.read_text(), server.sign_account_token
        offered = ControllerSettings(root_ca, ca, sign, self._cluster_cidrs)
        if self._settings.quiet_nodes:
            offered = replace(offered, node_grace_seconds=QUIET_GRACE_SECONDS)
        controllers = chosen_controllers(offered, self._settings.controllers)
        runner = ControllerRunner(
            client, informers, self._clock, self._metrics, controllers, self._rng,
            acting_as=lambda name: clients(user_name(name)),
        )  # fmt: skip
        try:
            await publish(client, self._configuration)
            await runner.run()
        finally:
            await informers.stop()

    @property
    def _cluster_cidrs(self) -> tuple[str, ...]:
        """Nodes get ranges where they are real, or not here: simulated ones need none."""
        simulated = isinstance(self._nodes, SimulatedNodes)
        return () if simulated else self._settings.ranges.cluster

    @property
    def _configuration(self) -> ClusterConfiguration:
        """What nodes that join are told."""
        ranges = self._settings.ranges
        return ClusterConfiguration(
            ",".join(ranges.cluster), ",".join(ranges.service), self._settings.network
        )

    @functools.cached_property
    def _identity(self) -> str:
        """Under which this process holds leases."""
        return f"{socket.gethostname()}_{self._rng.getrandbits(64):016x}"

    def _work(
        self,
        name: str,
        client: Client,
        work: Callable[[], Awaitable[None]],
        lease: LeaseSettings | None = None,
    ) -> None:
        """In a store of our own at once; else while no other process does the same."""
        if not self._shared:
            self._tasks.supervise(name, work)
            return
        held = lease or LeaseSettings("kube-system", name, self._identity)
        elector = Elector(client, held, clock=self._clock, rng=self._rng)
        self._tasks.supervise(name, lambda: _again_and_again(elector, work))


async def _again_and_again(elector: Elector, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await elector.run(work)


def _listen(settings: UpSettings, data: DataDir) -> socket.socket:
    """The port asked for; with 0 the one of last time where it is free, else any."""
    last = data.record().get("port")
    wanted = [settings.port] if settings.port else [last if isinstance(last, int) else 0, 0]
    for port in wanted:
        try:
            return bound_socket(settings.bind_address, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port != wanted[-1]:
                continue
            why = why_not_bound(settings.bind_address, port, "--port", error)
            raise CannotStart(why) from error
    raise AssertionError("the last port either was bound or raised")

"""`sampan kubelet`: one node as a process of its own, with an API server elsewhere, or with none.

Job: settings → client, certificates, runtime, node agent and its HTTP server; start and stop them.
Invariant: an API server that does not answer is no reason not to start, nor to stop.
Invariant: what runs on the node keeps running when this process ends, unless asked otherwise.
"""

import asyncio
import contextlib
import os
import random
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sampan.api.objects import Obj
from sampan.api.rules.tokens.account_token import NETWORK_ACCOUNT, VOLUMES_ACCOUNT
from sampan.client import kubeconfig
from sampan.client.account_identity import AccountIdentity
from sampan.client.contract import Client
from sampan.client.no_api_client import NoApiClient
from sampan.client.rest import RestClient, connect, context_of, without_identity
from sampan.client.trace_delivery import TraceDelivery
from sampan.cmd.background import own_log
from sampan.cmd.cluster import machine, node_accounts, nodes, pki
from sampan.cmd.cluster.certificates import signing
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, find_data_dir, open_data_dir
from sampan.cmd.cluster.node.cluster_configuration import (
    ClusterConfiguration,
    read_configuration,
)
from sampan.cmd.cluster.node.network import bare_node, claimed_pod_cidrs
from sampan.cmd.cluster.node.real_node import RealNode
from sampan.cmd.cluster.node.runtime_choice import chosen_runtime, what_a_node_misses
from sampan.cmd.cluster.nodes import NodeIdentity
from sampan.cmd.cluster.process import loop_factory, process_metrics, run_until_signal
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.releases import use_release
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.kubelet_config import read_config
from sampan.cmd.flags.scenario import FLAG as SCENARIO_FLAG
from sampan.cmd.flags.scenario import scenario_in
from sampan.cmd.settings import NodeProcessSettings
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.telemetry.traces import NO_TRACES, Outbox, Traces
from sampan.core.tls import server_context

if TYPE_CHECKING:
    from sampan.kubelet.kubelet import Kubelet
    from sampan.kubelet.server.http_server import KubeletServer

TRUST_SECONDS = 10.0  # that a start waits for somebody to sign its serving certificate
NO_SUCH_NODE = (
    "--kubeconfig, --bootstrap-kubeconfig or --join says where the API is; without any, "
    "--manifests is needed"
)


def run(settings: NodeProcessSettings) -> int:
    try:
        known = settings.kubeconfig or settings.join or settings.bootstrap_kubeconfig
        if not (known or settings.up.node.standalone):
            raise CannotStart(NO_SUCH_NODE)
        use_release(settings.up.release)
        data = open_data_dir(settings.up.data_dir)
        lock = Lock.take(data)
    except (CannotStart, DataDirError) as error:
        return _fail(error)
    log.set_up(settings.up.log_level, own_file=own_log())
    progress = Progress(sys.stdout, SystemClock())
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(settings, data, progress))
    except (CannotStart, DataDirError) as error:
        return _fail(error)
    finally:
        lock.release()
    return 0


def _fail(error: Exception) -> int:
    print(f"sampan: {error}", file=sys.stderr, flush=True)
    return 1


async def _serve(settings: NodeProcessSettings, data: DataDir, progress: Progress) -> None:
    def started() -> None:
        progress.say(f"ready in {progress.elapsed_seconds():.2f} s")
        if settings.up.ready_file:
            Path(settings.up.ready_file).write_text("ready\n")

    await run_until_signal(NodeProcess(settings, data, progress, SystemClock()), progress, started)


class _Node(Protocol):
    async def prepare(self) -> None: ...

    async def start(
        self, clients: nodes.ClientMaker, metrics: Metrics, tls: ssl.SSLContext
    ) -> None: ...

    def hurry(self) -> None: ...

    async def stop(self) -> None: ...


class NodeProcess:
    def __init__(
        self, settings: NodeProcessSettings, data: DataDir, progress: Progress, clock: Clock
    ) -> None:
        runtime = chosen_runtime(settings.up, data)
        self._settings = replace(settings, up=replace(settings.up, runtime=runtime))
        self._data, self._progress, self._clock = data, progress, clock
        self._identity = NodeIdentity(
            name=settings.up.node_name or machine.node_name(os.uname().nodename),
            addresses=machine.own_addresses(settings.up.node_ips),
        )
        self._node: _Node | None = None
        self._client: NoApiClient | RestClient | None = None
        self._provisioner: RestClient | None = None  # for volumes of the default StorageClass
        self._network: RestClient | None = None  # for Services, names and policies
        self._tasks = Tasks("node certificates")

    async def start(self) -> None:
        connection = await self._connection()
        tls = self._server_tls(connection)
        self._client = client = self._made_client(connection)
        pod_cidrs: tuple[str, ...] = ()
        if isinstance(client, RestClient) and self._is_ours:
            pod_cidrs = await self._ask_for_ranges(client)
        self._choose_addresses()
        self._node = node = self._chosen_node(connection)
        if isinstance(node, RealNode):
            node.pods.pod_cidrs = pod_cidrs
        await node.prepare()
        if connection is not None:
            self._provisioner = self._account_client(connection, client, VOLUMES_ACCOUNT)
            self._network = self._account_client(connection, client, NETWORK_ACCOUNT)
        await node.start(self._client_of, process_metrics(self._traces(client)), tls)
        if self._bootstraps and not self._given_certificate()[0] and isinstance(client, RestClient):
            await self._keep_serving(client, tls)

    def _traces(self, client: NoApiClient | RestClient) -> Traces:
        """The API server keeps them; a node without one has nobody to tell."""
        if not isinstance(client, RestClient):
            return NO_TRACES
        spans = Outbox()
        self._tasks.supervise("traces", TraceDelivery(client, spans, self._clock).run)
        return Traces(self._clock, outbox=spans)

    def _client_of(self, user: str) -> Client:
        if user == nodes.LOCAL_PROVISIONER_USER and self._provisioner is not None:
            return self._provisioner
        if user == node_accounts.NETWORK_USER and self._network is not None:
            return self._network
        assert self._client is not None
        return self._client

    def _account_client(
        self, connection: kubeconfig.Connection, kubelet: Client, account: str
    ) -> RestClient:
        """Without the kubelet's certificate: the server would take it for the kubelet."""
        own = node_accounts.account_of(account, self._identity.name)
        identity = AccountIdentity(kubelet, own, self._clock)
        nobody = without_identity(connection)
        agent = account.removeprefix("sampan-node-")
        return connect(nobody, clock=self._clock, user_agent=f"sampan-{agent}", identity=identity)

    async def _keep_serving(self, client: RestClient, tls: ssl.SSLContext) -> None:
        """Signed by the cluster's authority, once the cluster knows this node's address. A node is
        ready when `kubectl logs` works there; where nobody signs, it goes on without."""
        from sampan.cmd.cluster import bootstrap

        root, owner = self._data.pki, (self._identity.name, self._identity.addresses)
        trusted = asyncio.Event()
        self._tasks.supervise(
            "serving certificate",
            lambda: bootstrap.keep_serving(client, (tls, trusted), root, owner, self._clock),
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TRUST_SECONDS):
                await trusted.wait()

    @property
    def _is_ours(self) -> bool:
        """The pods' network, unless the cluster says otherwise."""
        up = self._settings.up
        real = up.runtime in ("cri", "native")
        return real and not up.cri_socket and self._settings.network != "none"

    async def _ask_for_ranges(self, client: RestClient) -> tuple[str, ...]:
        """The cluster's, and its network's mode, which become this node's settings where no flag
        says otherwise; returned are the ranges that the cluster gives the node's own pods."""
        from sampan.network import bridge

        known = await read_configuration(client)
        settings = self._settings.up
        pod_cidrs: tuple[str, ...] = ()
        has_range = bridge.record(self._data.root) is not None
        leaves = known is not None and (self._settings.network or known.network) == "none"
        if settings.node.register and not has_range and not leaves:
            bare = bare_node(self._identity.name, settings.node)
            pod_cidrs = await claimed_pod_cidrs(client, bare, self._clock)
        if known is None and pod_cidrs:
            known = await read_configuration(client)  # whoever gives ranges says them first
        self._take_ranges(known)
        return pod_cidrs

    def _choose_addresses(self) -> None:
        """Until the cluster's families are known, all that the machine has."""
        up = self._settings.up
        families = chosen_ranges(up.ranges, {}).families
        addresses = machine.node_addresses(up.node_ips, families)
        self._identity = replace(self._identity, addresses=addresses)

    def _take_ranges(self, known: ClusterConfiguration | None) -> None:
        """From now on; where the cluster cannot be asked, as it said last time."""
        up = self._settings.up
        known_facts: Obj = known.record() if known is not None else {}
        if known_facts:
            self._data.remember(**known_facts)
        known_facts = {**self._data.record(), **known_facts}
        given = {"cluster_cidr": up.ranges.cluster, "service_cidr": up.ranges.service}
        others = {name: known_facts.get(name) for name, flag in given.items() if not flag}
        ranges = chosen_ranges(up.ranges, others)
        network = self._settings.network or known_facts.get("network") or up.network
        self._settings = replace(self._settings, up=replace(up, ranges=ranges, network=network))

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._node is not None:
            await self._node.stop()
        for client in (self._client, self._provisioner, self._network):
            if isinstance(client, RestClient):
                await client.close()

    def hurry(self) -> None:
        if self._node is not None:
            self._node.hurry()

    def _chosen_node(self, connection: kubeconfig.Connection | None) -> _Node:
        setup = nodes.NodeSetup(
            self._settings.up, self._data, self._identity, self._progress, self._clock
        )
        if self._settings.up.runtime == "simulated":
            return SimulatedNode(setup)
        if self._settings.up.node.scenario:
            raise CannotStart(f"{SCENARIO_FLAG} is for --runtime simulated only")
        up = self._settings.up
        missing = [] if up.cri_socket else what_a_node_misses(up)
        if missing:
            raise CannotStart(f"a real node needs {', '.join(missing)}")
        return RealNode(
            setup,
            in_cluster=False,
            provisions=connection is not None,
            awaits_ready=self._settings.awaits_ready,
        )

    def _made_client(self, connection: kubeconfig.Connection | None) -> NoApiClient | RestClient:
        if connection is None:
            return NoApiClient()
        context = context_of(connection)
        client = connect(
            connection, clock=self._clock, user_agent="sampan-kubelet", context=context
        )
        if self._bootstraps:
            from sampan.cmd.cluster import bootstrap

            root, name = self._data.pki, self._identity.name
            self._tasks.supervise(
                "renewal", lambda: bootstrap.keep_fresh(client, context, root, name, self._clock)
            )
        return client

    @property
    def _bootstraps(self) -> bool:
        """As upstream: a kubeconfig that is there already needs no other."""
        settings = self._settings
        return bool(settings.bootstrap_kubeconfig) and not (
            settings.kubeconfig and Path(settings.kubeconfig).exists()
        )

    async def _connection(self) -> kubeconfig.Connection | None:
        settings = self._settings
        if self._bootstraps:
            from sampan.cmd.cluster import bootstrap

            first = _read(settings.bootstrap_kubeconfig)
            return await bootstrap.join(first, self._data.pki, self._identity.name, self._clock)
        if settings.join:
            return self._join(find_data_dir(settings.join))
        if not settings.kubeconfig:
            return None
        return _read(settings.kubeconfig)

    def _join(self, cluster: DataDir) -> kubeconfig.Connection:
        """A cluster on this machine: its authority signs who this node is."""
        name, addresses = self._identity.name, self._identity.addresses
        who, group = f"system:node:{name}", ("system:nodes",)
        wanted = [
            pki.Leaf("kubelet-client", who, group),
            pki.Leaf("kubelet", who, group, (name, *addresses, "localhost", "127.0.0.1")),
        ]
        try:
            signing.ensure_signed_by(pki.Pki(cluster.pki), self._data.pki, wanted, self._clock)
        except OSError as error:
            raise CannotStart(f"{cluster.root} has no authority to sign with: {error}") from error
        own, found = pki.Pki(self._data.pki), _read(str(cluster.kubeconfig))
        return replace(
            found,
            server=self._settings.server or found.server,
            certificate=own.certificate("kubelet-client").read_bytes(),
            key=own.key("kubelet-client").read_bytes(),
        )

    def _server_tls(self, connection: kubeconfig.Connection | None) -> ssl.SSLContext:
        """The API server must trust what we show, and we must trust what it shows."""
        settings, own = self._settings, pki.Pki(self._data.pki)
        certificate, key = self._given_certificate()
        if not certificate:
            if not settings.join:
                self._make_own_certificates()
            certificate, key = str(own.certificate("kubelet")), str(own.key("kubelet"))
        named = self._config_file("authentication", "x509", "clientCAFile")
        clients = settings.client_ca_file or named
        if not clients and connection is not None and connection.ca is not None:
            known = self._data.pki / "clients-ca.crt"
            self._data.pki.mkdir(mode=0o700, exist_ok=True)
            known.write_bytes(connection.ca)
            clients = str(known)
        try:
            return server_context(certificate, key, clients or own.ca)
        except (OSError, ssl.SSLError) as error:
            raise CannotStart(f"the node's certificate cannot be used: {error}") from error

    def _given_certificate(self) -> tuple[str, str]:
        settings = self._settings
        if settings.tls_cert_file:
            return settings.tls_cert_file, settings.tls_private_key_file
        return self._config_file("tlsCertFile"), self._config_file("tlsPrivateKeyFile")

    def _config_file(self, *path: str) -> str:
        """What the KubeletConfiguration names; empty: nothing. Raises CannotStart."""
        found: Any = read_config(self._settings.up.node)
        for name in path:
            found = (found or {}).get(name)
        return str(found or "")

    def _make_own_certificates(self) -> None:
        name, addresses = self._identity.name, self._identity.addresses
        serving = (name, *addresses, "localhost", "127.0.0.1")
        wanted = [
            pki.Leaf("kubelet", f"system:node:{name}", ("system:nodes",), serving),
            pki.Leaf("admin", "kubernetes-admin", ("system:masters",)),
        ]
        ensure(self._data.pki, wanted, self._clock)


def _read(path: str) -> kubeconfig.Connection:
    try:
        return kubeconfig.load(path, os.environ, str(Path.home())).connection()
    except kubeconfig.KubeconfigError as error:
        raise CannotStart(str(error)) from error


class SimulatedNode:
    """A node that only pretends, alone in its process."""

    def __init__(self, setup: nodes.NodeSetup) -> None:
        self._settings, self._data, self._identity = setup.settings, setup.data, setup.identity
        self._progress, self._clock = setup.progress, setup.clock
        self._tasks = Tasks("node")
        self._server: KubeletServer | None = None
        self._kubelet: Kubelet | None = None

    async def prepare(self) -> None:
        """Nothing to do."""

    async def start(
        self, clients: nodes.ClientMaker, metrics: Metrics, tls: ssl.SSLContext
    ) -> None:
        from sampan.kubelet.context import NodeContext
        from sampan.kubelet.kubelet import Kubelet
        from sampan.kubelet.server.access import ServerAccess
        from sampan.kubelet.server.http_server import KubeletServer
        from sampan.kubelet.server.lookup import RuntimeLookup
        from sampan.kubelet.settings import KubeletSettings
        from sampan.kubelet.simulated.runtime import SimulatedRuntime

        name, address = self._identity.name, self._identity.address
        with self._progress.step("node") as step:
            client, standalone = clients(f"system:node:{name}"), self._settings.node.standalone
            scenario = scenario_in(self._settings.node.scenario)
            runtime = SimulatedRuntime(clock=self._clock, node_name=name, scenario=scenario)
            kubelet: Kubelet | None = None
            server = KubeletServer(
                RuntimeLookup(lambda: kubelet.pods() if kubelet else [], runtime), runtime,
                clock=self._clock, metrics=metrics,
                healthy=lambda: kubelet.healthy() if kubelet else "", agent=lambda: kubelet,
                access=ServerAccess(name, None if standalone else client, self._clock),
                pretends=True,
            )  # fmt: skip
            port, taken = await nodes.listen(server, address, self._settings.node.port, tls)
            self._server = server
            kubelet = Kubelet(
                NodeContext(
                    settings=KubeletSettings(
                        name,
                        node_ips=self._identity.addresses,
                        root_dir=str(self._data.kubelet),
                        log_dir=str(self._data.root / "logs" / "pods"),
                        port=port,
                        simulated=True,
                        scenario=scenario,
                        **nodes.chosen_settings(self._settings.node),
                    ),
                    client=client,
                    runtime=runtime,
                    clock=self._clock,
                    metrics=metrics,
                    rng=random.Random(),
                )
            )
            self._kubelet = kubelet
            self._tasks.supervise("kubelet", kubelet.run)
            step.detail = f"{name} ({address}{taken}), simulated"

    def hurry(self) -> None:
        """Nothing takes long here."""

    async def stop(self) -> None:
        if self._kubelet is not None:
            await self._kubelet.shut_down()
        await self._tasks.stop()
        if self._server is not None:
            await self._server.stop(nodes.SERVER_GRACE_SECONDS)

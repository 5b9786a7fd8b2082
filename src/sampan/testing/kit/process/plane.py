"""The parts of a test cluster: API server, scheduler, controllers, simulated nodes.

Job: settings → parts in the running loop; listen when told to; let go of inherited connections.
Invariant: parts get clients, never each other; all randomness comes from one Random.
Owner: the process of the cluster.
"""

import asyncio
import io
import random
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from sampan.api.objects import Obj, micro_time_text
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.inprocess import Backend, InProcessClient
from sampan.cmd.cluster import pki
from sampan.cmd.cluster.addresses import server_names
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.node_accounts import INGRESS_USER
from sampan.cmd.cluster.nodes import NodeIdentity, Together, part_of_cluster
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.schedulers import configuration_in, scheduler_of, why_of
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.flags.stages import stage_controllers
from sampan.cmd.lab.recording import nodes_document
from sampan.cmd.settings import UpSettings
from sampan.cmd.simulation.lease_readers import LeaseReaders
from sampan.cmd.simulation.virtual_time import PATIENT
from sampan.cmd.snapshot.restore import restore
from sampan.cmd.snapshot.snapshot_file import BadSnapshot, read
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings, chosen_controllers
from sampan.controllers.controller import UnknownController
from sampan.controllers.identities import user_name
from sampan.controllers.runner import ControllerRunner
from sampan.core.clock import Clock, SystemClock
from sampan.core.http.messages import Limits, Request
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.telemetry.traces import Traces
from sampan.core.tls import client_context, server_context
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.core.virtual_time.outside import Outside, outside_of
from sampan.kubelet.contracts.runtime import Runtime
from sampan.kubelet.node.leases_on_demand import LeasesOnDemand
from sampan.store.compaction import keep_compacted
from sampan.store.contract import Store
from sampan.store.open import open_store
from sampan.testing.kit.objects import MANAGER
from sampan.testing.kit.process.faulty_edge import FaultyEdge
from sampan.testing.kit.process.guarded_processes import GuardedProcesses
from sampan.testing.kit.process.held_cluster import Failure
from sampan.testing.kit.process.severed import SeveredBackend
from sampan.testing.kit.process.write_log import WriteLog
from sampan.testing.kit.spec import CannotStart, Spec

if TYPE_CHECKING:
    from sampan.network.ingress.served import Served

IDENTITY = NodeIdentity("node-0", ("127.0.0.1",))
# Every process of the kit works in the directory of its cluster: what was set before a fork then
# means another place behind it.
HERE = "."
NODES_FILE = f"{HERE}/nodes.yaml"  # in the place of those that a snapshot has
EXIT_CODE, EXIT_REASON = 1, "Error"  # of a container that fails, where the test says no more


def ensure_pki(root: Path) -> None:
    """Once for all clusters of a test run: making keys takes longer than all the rest."""
    names = server_names("127.0.0.1", IDENTITY.name, IDENTITY.addresses)
    node_names = [IDENTITY.name, "localhost", "127.0.0.1"]
    ensure(root, pki.leaves(names, IDENTITY.name, node_names), SystemClock())


def watched_outside(store: Store) -> Outside:
    """Of the running loop: where its time can be held, it waits for them; elsewhere they are only
    seen."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, SteppedLoop):
        return outside_of(loop, lambda: store.revision, _is_of_the_kit)
    return Outside(lambda: store.revision, loop.time, is_own=_is_of_the_kit)


def _is_of_the_kit(request: Request) -> bool:
    return request.headers.get("user-agent") == MANAGER


def _objects_in(path: str) -> Sequence[Obj]:
    try:
        return read(Path(path)).objects if path else ()
    except BadSnapshot as error:
        raise CannotStart(str(error)) from error


class Plane:
    def __init__(self, spec: Spec, keys: Path, schema: Schema, clock: Clock) -> None:
        self._spec, self._schema, self.clock = spec, schema, clock
        self._pki = pki.Pki(keys)
        self._tls = server_context(
            self._pki.certificate("apiserver"), self._pki.key("apiserver"), self._pki.ca
        )
        self._node_tls = server_context(
            self._pki.certificate("kubelet"), self._pki.key("kubelet"), self._pki.ca
        )
        self._metrics = Metrics(Traces(clock))
        self._tasks = Tasks("test cluster")
        self._http: Server | None = None
        self._leases: LeasesOnDemand | None = None  # where time is virtual
        self._ingress: Served | None = None
        self.ways: dict[str, SeveredBackend] = {}  # of nodes to the API
        self.rng = random.Random()
        self._objects = _objects_in(spec.snapshot)
        self._stages = (spec.stages,) if spec.stages else ()
        self.nodes = self._simulated_nodes()
        self.store: Store
        self.server: ApiServer
        self.edge: FaultyEdge
        self.writes: WriteLog | None = None
        self.guarded = GuardedProcesses()
        self.outside: Outside

    def check(self) -> None:
        """Raises CannotStart where the choices name what there is not, here or in cmd.errors."""
        stage_controllers(self._stages, "stages")
        try:
            chosen_controllers(ControllerSettings(""), self._spec.controller_names)
        except UnknownController as error:
            raise CannotStart(f"controllers={self._spec.controllers!r}: {error}") from error

    async def start(self) -> None:
        """Returns when every node is Ready."""
        url = "memory:" if self._spec.store == "memory" else f"sqlite:///{HERE}/store.db"
        self.store = await open_store(url, self.clock)
        self.outside = watched_outside(self.store)
        if self._objects:
            await self._restore()
        self.server = ApiServer(
            self.store, self._schema, self._settings(), self.clock, self._metrics, self.rng
        )
        if self._spec.virtual:
            self._leases = self.nodes.renew_on_demand(self._renew_leases)
        else:
            self.nodes.act_together(Together(self._renew_leases))
        readers = LeaseReaders(self.server.handle_http, self._leases)
        self.edge = FaultyEdge(readers, self.clock)
        self.server.before_webhooks(self.edge.hold_webhook)
        await self.server.start()
        self._tasks.supervise("compaction", lambda: keep_compacted(self.store, self.clock))
        self._tasks.supervise("service repair", self.server.keep_repaired)
        if self._spec.scheduler:
            self._start_scheduler()
        self._tasks.supervise("controllers", self._control)
        if self._spec.ingress:
            await self._start_ingress()
        if self._has_nodes:
            await self.nodes.start(self.client_of, self._metrics, self._node_tls)

    async def _start_ingress(self) -> None:
        """What the API is told of it: simulated pods have no ports that it could lead to."""
        from sampan.network.ingress.served import Served

        client, told = self.client_of(INGRESS_USER), [{"hostname": "localhost"}]
        ports = {"http": 80, "https": 443}
        self._ingress = Served(client, told, ports, self.clock, self.rng)
        await self._ingress.start()

    async def _restore(self) -> None:
        try:
            await restore(self.store, self._objects)
        except BadSnapshot as error:
            raise CannotStart(f"{self._spec.snapshot}: {error}") from error

    async def listen(self) -> int:
        """From now on clients outside are answered; says on which port."""
        handler = self.outside.around(self.edge)
        self._http = Server(
            handler,
            ssl_context=self._tls,
            wants_body=self.server.wants_body,
            limits=PATIENT if self._spec.virtual else Limits(),
        )
        return await self._http.start("127.0.0.1", 0)

    async def stop(self) -> None:
        if self._ingress is not None:
            await self._ingress.stop()
        if self._has_nodes:
            await self.nodes.stop()
        await self._tasks.stop()
        await self.hang_up()
        await self.server.stop()
        await self.store.close()

    async def hang_up(self) -> None:
        """Listen no more."""
        if self._http is not None:
            await self._http.stop(0.0)
            self._http = None

    def forget_connections(self) -> None:
        """In a forked process: what was open is the other's."""
        self._http = None
        self.outside.forget()
        self.guarded = GuardedProcesses()
        self.nodes.forget_servers()

    def admin(self) -> Client:
        return InProcessClient(self.server.as_user(User("sampan-test", (MASTERS,))))

    def runtime_of(self, node: str) -> Runtime | None:
        return self.nodes.runtimes.get(node)

    async def end_container(self, node: str, container_id: str, failure: Failure) -> None:
        code = EXIT_CODE if failure.exit_code is None else failure.exit_code
        self.nodes.runtimes[node].crash(container_id, code, failure.reason or EXIT_REASON)

    async def kill_node(self, name: str) -> None:
        await self.nodes.kill(name)

    async def note_silence(self, node: str) -> None:
        if self._leases is not None:  # the last that it did
            await self.server.renew_leases({node: micro_time_text(self.clock.now())})

    def client_of(self, user: str) -> Client:
        backend: Backend = self.server.as_user(part_of_cluster(user))
        node = user.removeprefix("system:node:")
        if node != user:
            backend = self.ways[node] = SeveredBackend(backend)
        return InProcessClient(backend)

    async def _renew_leases(self, times: Mapping[str, str]) -> Collection[str]:
        """Node → renewTime, and those that have to renew by themselves: a node whose network is cut
        finds out that it cannot."""
        cut = [node for node in times if self.ways[node].is_cut]
        renewed = {node: time for node, time in times.items() if node not in cut}
        return [*cut, *await self.server.renew_leases(renewed)]

    def _attends(self, node: str) -> bool:
        return self.nodes.attends(node) and not self.ways[node].is_cut

    def _simulated_nodes(self) -> SimulatedNodes:
        known = [obj for obj in self._objects if obj["kind"] == "Node"]
        file = self._spec.nodes_file
        if known and not file:
            file = NODES_FILE
            Path(file).write_bytes(orjson.dumps(nodes_document(known, by_name=True)))
        self._has_nodes = bool(self._spec.nodes or file)
        settings = UpSettings(
            data_dir=HERE, runtime="simulated", nodes=self._spec.nodes, nodes_file=file,
            clock=self._spec.clock,
        )  # fmt: skip
        progress = Progress(io.StringIO(), self.clock)
        return SimulatedNodes(settings, IDENTITY, progress, self.clock, self.rng)

    def _settings(self) -> ApiServerSettings:
        return ApiServerSettings(
            token_signing_key_pem=self._pki.token_key.read_bytes(),
            ca_bundle_pem=self._pki.ca.read_text(),
            client_ca_pem=self._pki.ca.read_bytes(),
            bootstrap_tokens=True,
            kubelet_place=self.nodes.place_of,
            kubelet_tls=lambda: client_context(
                ca_path=self._pki.ca,
                cert_path=self._pki.certificate("apiserver-kubelet-client"),
                key_path=self._pki.key("apiserver-kubelet-client"),
            ),
        )

    def _start_scheduler(self) -> None:
        client = self.client_of("system:kube-scheduler")
        file = self._spec.scheduler_config
        if file:
            sys.path.insert(0, str(Path(file).parent))  # where its plugins are
        configuration = configuration_in(file, "scheduler_config")
        scheduler = scheduler_of(configuration, client, self.clock, self._metrics, self.rng)
        self.server.add_document("/sampan/v1/why/", why_of(scheduler))
        self._tasks.supervise("kube-scheduler", scheduler.run)

    async def _control(self) -> None:
        client = self.client_of("system:kube-controller-manager")
        informers = Informers(client, clock=self.clock, rng=self.rng)
        ca = Ca(self._pki.ca.read_bytes(), self._pki.ca_key.read_bytes())
        sign = self.server.sign_account_token
        offered = ControllerSettings(
            self._pki.ca.read_text(), ca, sign, clock=self.clock, attended=self._attends,
            further=stage_controllers(self._stages, "stages"),
        )  # fmt: skip
        runner = ControllerRunner(
            client, informers, self.clock, self._metrics,
            chosen_controllers(offered, self._spec.controller_names), self.rng,
            acting_as=lambda name: self.client_of(user_name(name)),
        )  # fmt: skip
        try:
            await runner.run()
        finally:
            await informers.stop()

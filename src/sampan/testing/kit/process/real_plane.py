"""The parts of a test cluster whose node is this machine: as `sampan up` starts them.

Job: what a test chose → an AllInOne; the kit's faults around its API server, its node's way to it
    in the test's hand.
Invariant: containers run in real time, and end as they do on any node.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

from sampan.apiserver.server import ApiServer
from sampan.client.contract import Client
from sampan.client.inprocess import Backend
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node.real_node import RealNode
from sampan.cmd.cluster.node.runtime_choice import chosen_runtime
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import IngressChoices, UpSettings
from sampan.core.clock import Clock, SystemClock
from sampan.core.http.messages import Handler, Limits
from sampan.core.virtual_time.outside import Outside
from sampan.kubelet.contracts.runtime import Runtime
from sampan.kubelet.node.leases_on_demand import LeasesOnDemand
from sampan.store.contract import Store
from sampan.testing.kit.process.faulty_edge import FaultyEdge
from sampan.testing.kit.process.guarded_processes import GuardedProcesses
from sampan.testing.kit.process.held_cluster import Failure
from sampan.testing.kit.process.plane import watched_outside
from sampan.testing.kit.process.severed import SeveredBackend
from sampan.testing.kit.process.write_log import WriteLog
from sampan.testing.kit.spec import Spec

KILLED_CODE, KILLED_REASON = 137, "Error"
_NODE = "system:node:"


class RealPlane:
    limits = Limits()

    def __init__(self, spec: Spec, data: DataDir, seed: int | None) -> None:
        self.clock: Clock = SystemClock()
        self.ways: dict[str, SeveredBackend] = {}
        self._server: ApiServer
        self.store: Store
        self.writes: WriteLog | None = None
        self.guarded = GuardedProcesses()
        self.edge: FaultyEdge
        self.outside: Outside
        if spec.scheduler_config:
            sys.path.insert(0, str(Path(spec.scheduler_config).parent))  # where its plugins are
        self.cluster = AllInOne(
            _settings(spec, data), data, Progress(sys.stderr, self.clock), self.clock,
            random.Random(seed), self,
        )  # fmt: skip

    # What the API server has around itself.

    def offer(self, server: ApiServer, store: Store) -> None:
        self._server, self.store = server, store
        self.outside = watched_outside(store)

    def around(self, handler: Handler) -> Handler:
        self.edge = FaultyEdge(handler, self.clock)
        self._server.before_webhooks(self.edge.hold_webhook)
        return self.outside.around(self.edge)

    def between(self, user: str, backend: Backend) -> Backend:
        node = user.removeprefix(_NODE)
        return backend if node == user else self.ways.setdefault(node, SeveredBackend(backend))

    def renew_on_demand(self, leases: LeasesOnDemand) -> None:
        """Real time has no idle weeks."""

    def let_go(self) -> None:
        for way in self.ways.values():
            way.mend()

    # What a test asks for.

    def admin(self) -> Client:
        return self.cluster.admin()

    def runtime_of(self, node: str) -> Runtime | None:
        nodes = self.cluster.nodes
        return nodes.containers if node in self.ways and isinstance(nodes, RealNode) else None

    async def end_container(self, node: str, container_id: str, failure: Failure) -> None:
        if failure.exit_code not in (None, KILLED_CODE) or failure.reason not in (
            "",
            KILLED_REASON,
        ):
            raise ValueError(
                f"a real container that is killed ends with {KILLED_CODE} and {KILLED_REASON}: "
                "exit_code= and reason= are for simulated nodes"
            )
        runtime = self.runtime_of(node)
        assert runtime is not None, "somebody found a container there"
        await runtime.stop_container(container_id, 0.0)

    async def kill_node(self, name: str) -> None:
        raise ValueError(f"node {name} is this machine: cut it, or kill simulated ones")

    async def note_silence(self, node: str) -> None:
        """It is missed by itself."""


def _settings(spec: Spec, data: DataDir) -> UpSettings:
    settings = UpSettings(
        data_dir=str(data.root),
        port=0,
        store="memory:" if spec.store == "memory" else "",
        runtime=spec.runtime or "auto",
        controllers=spec.controller_names,
        scheduler=spec.scheduler,
        scheduler_config=spec.scheduler_config,
        ingress=IngressChoices(0, 0) if spec.ingress else None,
        stages=(spec.stages,) if spec.stages else (),
    )
    # A real node, or one line that says what is missing: never a simulated one in its place.
    return replace(settings, runtime=chosen_runtime(settings, data))

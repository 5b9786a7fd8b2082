"""What stands behind envtest's `kube-apiserver`: an API server, controllers, simulated nodes.

Job: an API server's settings and what is wanted beside it → all of it started and stopped.
Invariant: it needs no key of the authority that signed the server's certificates: envtest keeps
    that to itself. What only such a key could do is not done (certificates for requests).
Owner: `sampan testserver`.
"""

import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.inprocess import InProcessClient
from sampan.cmd.cluster import pki
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.nodes import NodeIdentity, Nodes, NoNodes, Together, part_of_cluster
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.flags.scenario import scripts_in
from sampan.cmd.flags.stages import stage_controllers
from sampan.cmd.settings import ApiServerProcessSettings, Beside, NodeChoices, UpSettings
from sampan.cmd.verbs.apiserver import ApiServerProcess
from sampan.controllers.catalog import ControllerSettings, chosen_controllers
from sampan.controllers.controller import Controller
from sampan.controllers.identities import user_name
from sampan.controllers.runner import ControllerRunner
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.tls import server_context

IDENTITY = NodeIdentity("node-0", ("127.0.0.1",))


class EnvtestPlane:
    def __init__(
        self, settings: ApiServerProcessSettings, beside: Beside, progress: Progress, clock: Clock
    ) -> None:
        """Raises UnknownController."""
        self._beside, self._clock = beside, clock
        self._rng, self._metrics = random.Random(), Metrics()
        chosen_controllers(ControllerSettings(""), beside.controllers)
        self._keys = pki.Pki(Path(tempfile.mkdtemp(prefix="sampan-testserver-")))
        self._certificate = Path(settings.files.certificate)
        self._nodes: Nodes = NoNodes(IDENTITY)
        if beside.nodes:
            settings = self._with_nodes(settings, progress)
        self._process = ApiServerProcess(settings, progress, clock, self._for_nodes)
        self._tasks = Tasks("testserver")

    async def start(self) -> None:
        """Returns when every node is Ready; requests are answered before. Raises CannotStart."""
        await self._process.start()
        server = self._process.server
        assert server is not None, "it was started before"
        controllers = self._controllers(server)
        self._tasks.supervise("controllers", lambda: self._control(controllers))
        if self._beside.nodes:
            self._start_scheduler()
            self._nodes.act_together(
                Together(
                    server.renew_leases, server.register_nodes, server.report_nodes,
                    server.add_action,
                )
            )  # fmt: skip
            certificate, key = self._keys.certificate("kubelet"), self._keys.key("kubelet")
            tls = server_context(certificate, key, self._keys.ca)
            await self._nodes.start(self._client_of, self._metrics, tls)

    async def stop(self) -> None:
        await self._nodes.stop()
        await self._tasks.stop()
        await self._process.stop()
        shutil.rmtree(self._keys.root, ignore_errors=True)

    def hurry(self) -> None:
        self._nodes.hurry()

    def _with_nodes(
        self, settings: ApiServerProcessSettings, progress: Progress
    ) -> ApiServerProcessSettings:
        """Nodes and API server know each other by keys of their own."""
        chosen = UpSettings(
            data_dir=str(self._keys.root), runtime="simulated", nodes=self._beside.nodes,
            node=NodeChoices(scenario=self._beside.scenario),
        )  # fmt: skip
        self._nodes = SimulatedNodes(chosen, IDENTITY, progress, self._clock, self._rng)
        served = ("localhost", "127.0.0.1")
        wanted = (*pki.server_leaves(served), pki.node_leaf(IDENTITY.name, served))
        ensure(self._keys.root, wanted, self._clock)
        client = "apiserver-kubelet-client"
        files = replace(
            settings.files,
            kubelet_certificate=str(self._keys.certificate(client)),
            kubelet_key=str(self._keys.key(client)),
            kubelet_ca=str(self._keys.ca),
        )
        return replace(settings, files=files)

    def _for_nodes(self, settings: ApiServerSettings) -> ApiServerSettings:
        scripts_of = scripts_in(self._beside.scenario)
        return replace(settings, kubelet_place=self._nodes.place_of, scripts_of=scripts_of)

    def _client_of(self, user: str) -> Client:
        server = self._process.server
        assert server is not None, "it was started before"
        return InProcessClient(server.as_user(part_of_cluster(user)))

    def _start_scheduler(self) -> None:
        from sampan.cmd.cluster.schedulers import configuration_in, scheduler_of

        client = self._client_of("system:kube-scheduler")
        scheduler = scheduler_of(
            configuration_in(""), client, self._clock, self._metrics, self._rng
        )
        self._tasks.supervise("kube-scheduler", scheduler.run)

    def _controllers(self, server: ApiServer) -> list[Controller]:
        offered = ControllerSettings(
            root_ca=self._certificate.read_text(),  # whoever knows its authority has not said it
            sign_account_token=server.sign_account_token,
            clock=self._clock,
            further=stage_controllers(self._beside.stages),
        )
        return chosen_controllers(offered, self._beside.controllers)

    async def _control(self, controllers: list[Controller]) -> None:
        own = self._client_of("system:kube-controller-manager")
        informers = Informers(own, clock=self._clock)
        runner = ControllerRunner(
            own, informers, self._clock, self._metrics, controllers,
            acting_as=lambda name: self._client_of(user_name(name)),
        )  # fmt: skip
        try:
            await runner.run()
        finally:
            await informers.stop()

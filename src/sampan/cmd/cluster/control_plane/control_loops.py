"""Scheduler and controllers of `sampan up`, wherever they run.

Job: settings and clients → the work, as something to await.
Invariant: they get clients, never the API server: in one process or in several, the work is one.
"""

import functools
import random
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.leader_election import LeaderElector, LeaseSettings
from sampan.cmd.cluster import pki
from sampan.cmd.cluster.node.cluster_configuration import ClusterConfiguration, publish
from sampan.cmd.cluster.nodes import ClientMaker
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.stages import stage_controllers
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics

if TYPE_CHECKING:
    from sampan.controllers.access.account_tokens import Sign
    from sampan.controllers.runner import ControllerRunner
    from sampan.scheduler.loop import Scheduler
    from sampan.scheduler.settings import Configuration

ALL_CONTROLLERS = ("*",)
QUIET_GRACE_SECONDS = 3 * 86400.0  # of nodes whose heartbeats come once a day
SCHEDULER_USER = "system:kube-scheduler"
CONTROLLERS_USER = "system:kube-controller-manager"

Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ControlLoops:
    settings: UpSettings
    clients: ClientMaker
    clock: Clock
    metrics: Metrics
    rng: random.Random
    shared: bool  # other processes use the same store
    attended: Callable[[str], bool] = lambda _node: False  # nodes that do not fall silent unnoticed
    begun: "Callable[[ControllerRunner], None]" = lambda _runner: None  # told who runs them

    def scheduling(self, configuration: "Configuration") -> "tuple[Scheduler, Work]":
        from sampan.cmd.cluster.schedulers import lease_of, measured, scheduler_of

        client = self.clients(SCHEDULER_USER)
        if self.settings.measures_plugins:
            configuration = measured(configuration, self.metrics)
        scheduler = scheduler_of(configuration, client, self.clock, self.metrics, self.rng)
        self.metrics.memory.add("scheduler", lambda: [scheduler])
        if not configuration.election.elects:
            return scheduler, scheduler.run
        election = configuration.election
        return scheduler, self._led(client, scheduler.run, functools.partial(lease_of, election))

    def controlling(self, keys: pki.Pki, sign: "Sign | None", *, gives_ranges: bool) -> Work:
        """`gives_ranges`: nodes get theirs where they are real, or not here: simulated ones need
        none."""
        work = functools.partial(self._control, keys, sign, gives_ranges)
        lease = functools.partial(LeaseSettings, "kube-system", "kube-controller-manager")
        return self._led(self.clients(CONTROLLERS_USER), work, lease)

    async def _control(self, keys: pki.Pki, sign: "Sign | None", gives_ranges: bool) -> None:
        from sampan.controllers.access.csr_signing import Ca
        from sampan.controllers.catalog import ControllerSettings, chosen_controllers
        from sampan.controllers.identities import user_name
        from sampan.controllers.runner import ControllerRunner

        client, ranges = self.clients(CONTROLLERS_USER), self.settings.ranges
        informers = Informers(client, clock=self.clock, rng=self.rng)
        ca = Ca(keys.ca.read_bytes(), keys.ca_key.read_bytes())
        cidrs = ranges.cluster if gives_ranges else ()
        offered = ControllerSettings(
            keys.ca.read_text(), ca, sign, cidrs, clock=self.clock, attended=self.attended,
            further=stage_controllers(self.settings.stages),
        )  # fmt: skip
        if self.settings.quiet_nodes:
            offered = replace(offered, node_grace_seconds=QUIET_GRACE_SECONDS)
        controllers = chosen_controllers(offered, self.settings.controllers)
        runner = ControllerRunner(
            client, informers, self.clock, self.metrics, controllers, self.rng,
            acting_as=lambda name: self.clients(user_name(name)),
        )  # fmt: skip
        self.metrics.memory.add("informers of controllers", lambda: [informers])
        self.metrics.memory.add("controllers", lambda: [runner])
        # What nodes that join are told.
        known = ClusterConfiguration(
            ",".join(ranges.cluster), ",".join(ranges.service), self.settings.network
        )
        self.begun(runner)
        try:
            await publish(client, known)
            await runner.run()
        finally:
            await informers.stop()

    def _led(
        self, client: Client, work: Work, lease_held_by: Callable[[str], LeaseSettings]
    ) -> Work:
        """In a store of our own at once; else while no other process does the same."""
        if not self.shared:
            return work
        lease = lease_held_by(f"{socket.gethostname()}_{self.rng.getrandbits(64):016x}")
        elector = LeaderElector(client, lease, clock=self.clock, rng=self.rng)

        async def again_and_again() -> None:
            while True:
                await elector.run(work)

        return again_and_again


def check_controllers(settings: UpSettings) -> None:
    """Raises CannotStart."""
    stage_controllers(settings.stages)  # a mistake in them is said at once
    if settings.controllers == ALL_CONTROLLERS:
        return  # without looking: nobody waits for the import
    from sampan.controllers.catalog import ControllerSettings, chosen_controllers
    from sampan.controllers.controller import UnknownController

    try:
        chosen_controllers(ControllerSettings(""), settings.controllers)
    except UnknownController as error:
        raise CannotStart(f"--controllers: {error}") from error

"""A process of the control plane that works while it leads: the scheduler, the controllers.

Job: kubeconfig → client; lead while the lease is ours, wait for it while it is not; say how it is.
Invariant: of several such processes at most one works; who lost the lease stands in line again.
"""

import os
import random
import socket
from pathlib import Path
from typing import Protocol

from sampan.client import kubeconfig
from sampan.client.delegated_access import DelegatedAccess
from sampan.client.leader_election import LeaderElector, LeaseSettings
from sampan.client.rest import RestClient, connect
from sampan.client.trace_delivery import TraceDelivery
from sampan.cmd.background import own_log
from sampan.cmd.cluster.component_server import ComponentServer, zpages_of
from sampan.cmd.cluster.process import process_metrics, run_alone
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.releases import use_release
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ComponentSettings, ElectionChoices
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.core.telemetry.traces import Outbox, Traces


class Duty(Protocol):
    """What the process does while it leads."""

    name: str

    def prepare(self, connection: kubeconfig.Connection) -> None:
        """Everything that can be wrong is said here, as CannotStart."""

    def election(self) -> ElectionChoices:
        """With nothing left open; asked after `prepare`."""

    async def work(self, client: RestClient, metrics: Metrics) -> None:
        """Until cancelled."""


def run(settings: ComponentSettings, duty: Duty, progress: Progress) -> int:
    log.set_up(settings.log_level, own_file=own_log())
    use_release(settings.release, warn=progress.warn)
    process = ComponentProcess(settings, duty, progress, SystemClock())
    return run_alone(
        process,
        progress,
        settings.ready_file,
        lambda: "waiting for the lease" if process.elects else "working",
    )


class ComponentProcess:
    def __init__(
        self, settings: ComponentSettings, duty: Duty, progress: Progress, clock: Clock
    ) -> None:
        self._settings, self._duty = settings, duty
        self._progress, self._clock = progress, clock
        self._spans = Outbox()
        self._metrics = process_metrics(Traces(clock, outbox=self._spans))
        self._tasks = Tasks(duty.name)
        self._clients: list[RestClient] = []
        self._server: ComponentServer | None = None
        self._elector: LeaderElector | None = None
        self.elects = False

    async def start(self) -> None:
        """Returns at once: whether the API answers yet is the lease's affair."""
        settings = self._settings
        connection = read_connection(settings.kubeconfig)
        self._duty.prepare(connection)
        client = self._connect(connection)
        lease = lease_of(self._duty.election())
        if lease is not None:
            self.elects = True
            self._elector = LeaderElector(client, lease, clock=self._clock, rng=random.Random())
            self._show_leadership(self._elector, lease.name)
        checks = {"leaderElection": self._elector.trouble} if self._elector is not None else {}
        access = self._access(client)
        self._server = ComponentServer(settings.serving, access, checks, self._metrics, self._clock)
        self._server.zpages = zpages_of(self._duty.name, settings.flags, self._clock)
        await self._server.start()
        delivery = TraceDelivery(client, self._spans, self._clock)
        self._tasks.supervise("traces", delivery.run)
        if settings.serving.port and not settings.serving.client_ca:
            server = self._server
            self._tasks.supervise("client authority", lambda: server.learn_client_ca(client))
        self._tasks.supervise("lead", lambda: self._stand_in_line(client))

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._server is not None:
            await self._server.stop()
        for client in self._clients:
            await client.close()

    def hurry(self) -> None:
        """Nothing takes long here."""

    def _connect(self, connection: kubeconfig.Connection) -> RestClient:
        agent = f"sampan-{self._duty.name}"
        self._clients.append(connect(connection, clock=self._clock, user_agent=agent))
        return self._clients[-1]

    def _access(self, own: RestClient) -> DelegatedAccess:
        serving = self._settings.serving
        reviewer, judge = (
            self._connect(read_connection(path)) if path else own
            for path in (serving.authentication_kubeconfig, serving.authorization_kubeconfig)
        )
        return DelegatedAccess(reviewer, self._clock, judge)

    async def _stand_in_line(self, client: RestClient) -> None:
        async def work() -> None:
            self._progress.say("working")
            await self._duty.work(client, self._metrics)

        if self._elector is None:
            await work()
        while self._elector is not None:
            await self._elector.run(work)

    def _show_leadership(self, elector: LeaderElector, lease: str) -> None:
        self._metrics.gauge(
            "leader_election_master_status",
            "Whether this process leads (1) or waits (0), by the lease's name.",
            ("name",),
        ).read_from(lambda: {(lease,): float(elector.leading)})


def read_connection(path: str) -> kubeconfig.Connection:
    """Raises CannotStart."""
    try:
        return kubeconfig.load(path, os.environ, str(Path.home())).connection()
    except kubeconfig.KubeconfigError as error:
        raise CannotStart(str(error)) from error


def lease_of(election: ElectionChoices) -> LeaseSettings | None:
    """None: it works without one. Raises CannotStart."""
    if not election.elects:
        return None
    if not election.lease_seconds > election.renew_seconds > election.retry_seconds > 0:
        raise CannotStart(
            "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and "
            "that longer than --leader-elect-retry-period"
        )
    rng = random.Random()
    return LeaseSettings(
        election.namespace,
        election.name,
        f"{socket.gethostname()}_{rng.getrandbits(64):016x}",
        max(1, round(election.lease_seconds)),
        election.renew_seconds,
        election.retry_seconds,
    )


def settled(chosen: ElectionChoices, otherwise: ElectionChoices) -> ElectionChoices:
    """What was chosen, and for the rest the other's."""
    return ElectionChoices(
        otherwise.elects if chosen.elects is None else chosen.elects,
        chosen.namespace or otherwise.namespace,
        chosen.name or otherwise.name,
        chosen.lease_seconds or otherwise.lease_seconds,
        chosen.renew_seconds or otherwise.renew_seconds,
        chosen.retry_seconds or otherwise.retry_seconds,
    )

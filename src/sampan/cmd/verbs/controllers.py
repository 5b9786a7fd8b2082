"""`sampan controllers`: the controllers as a process of their own, with an API server elsewhere.

Job: settings → client, lease, runner; lead while the lease is ours, wait for it while it is not.
Invariant: of several such processes at most one works; who lost the lease stands in line again.
"""

import asyncio
import ipaddress
import os
import random
import socket
import sys
from pathlib import Path

from sampan.client import kubeconfig
from sampan.client.informer import Informers
from sampan.client.leader_election import Elector, LeaseSettings
from sampan.client.rest import RestClient, connect
from sampan.cmd.cluster.process import loop_factory, run_until_signal
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ControllersSettings
from sampan.controllers.access.account_tokens import Sign
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings, chosen_controllers
from sampan.controllers.controller import UnknownController
from sampan.controllers.runner import ControllerRunner
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks

LEASE = ("kube-system", "kube-controller-manager")  # as upstream: both never work at once


def run(settings: ControllersSettings) -> int:
    log.set_up(settings.log_level)
    progress = Progress(sys.stdout, SystemClock())
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(settings, progress))
    except CannotStart as error:
        print(f"sampan: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


async def _serve(settings: ControllersSettings, progress: Progress) -> None:
    def started() -> None:
        progress.say("waiting for the lease" if settings.leader_elect else "working")
        if settings.ready_file:
            Path(settings.ready_file).write_text("ready\n")

    await run_until_signal(ControllersProcess(settings, progress, SystemClock()), progress, started)


class ControllersProcess:
    def __init__(self, settings: ControllersSettings, progress: Progress, clock: Clock) -> None:
        self._settings, self._progress, self._clock = settings, progress, clock
        self._tasks = Tasks("controllers")
        self._client: RestClient | None = None
        self._offered = ControllerSettings("")

    async def start(self) -> None:
        """Returns at once: whether the API answers yet is the lease's affair."""
        try:
            chosen_controllers(self._offered, self._settings.controllers)
            connection = kubeconfig.load(
                self._settings.kubeconfig, os.environ, str(Path.home())
            ).connection()
        except (UnknownController, kubeconfig.KubeconfigError) as error:
            raise CannotStart(str(error)) from error
        self._offered = self._read((connection.ca or b"").decode())
        self._client = connect(connection, clock=self._clock, user_agent="sampan-controllers")
        self._tasks.supervise("lead", self._stand_in_line)

    def _read(self, root_ca: str) -> ControllerSettings:
        settings = self._settings
        try:
            if settings.root_ca_file:
                root_ca = Path(settings.root_ca_file).read_text()
            ca = None
            if settings.signing_cert_file:
                key = Path(settings.signing_key_file).read_bytes()
                ca = Ca(Path(settings.signing_cert_file).read_bytes(), key)
            sign = _token_signer(settings.account_key_file)
            for cidr in settings.cluster_cidrs:
                ipaddress.ip_network(cidr)
        except (OSError, ValueError) as error:
            raise CannotStart(str(error)) from error
        if ca is None:
            self._progress.warn("no --cluster-signing-cert-file: certificate requests wait")
        if sign is None:
            self._progress.warn("no --service-account-private-key-file: token secrets stay empty")
        return ControllerSettings(root_ca, ca, sign, settings.cluster_cidrs)

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._client is not None:
            await self._client.close()

    def hurry(self) -> None:
        """Nothing takes long here."""

    async def _stand_in_line(self) -> None:
        if not self._settings.leader_elect:
            await self._work()
            return
        assert self._client is not None
        rng = random.Random()
        identity = f"{socket.gethostname()}_{rng.getrandbits(64):016x}"
        lease = LeaseSettings(*LEASE, identity)
        while True:
            elector = Elector(self._client, lease, clock=self._clock, rng=rng)
            await elector.run(self._work)

    async def _work(self) -> None:
        """While leading. New each time: some controllers have a memory, and caches grow old."""
        assert self._client is not None
        self._progress.say("working")
        informers = Informers(self._client, clock=self._clock)
        chosen = chosen_controllers(self._offered, self._settings.controllers)
        runner = ControllerRunner(self._client, informers, self._clock, Metrics(), chosen)
        try:
            await runner.run()
        finally:
            await informers.stop()


def _token_signer(key_file: str) -> Sign | None:
    if not key_file:
        return None
    # Only whoever fills secrets with tokens needs the cryptography.
    from sampan.apiserver.authn.tokens import TokenSigner

    return TokenSigner(Path(key_file).read_bytes(), "").legacy_token

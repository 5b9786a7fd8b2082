"""`sampan controllers`: the controllers as a process of their own, with an API server elsewhere.

Job: settings → the controllers that work while the process leads.
"""

import ipaddress
import sys
from collections.abc import Callable
from pathlib import Path

from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.kubeconfig import Connection
from sampan.client.rest import RestClient
from sampan.cmd.cluster import component
from sampan.cmd.cluster.account_clients import AccountClients
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ControllersSettings, ElectionChoices
from sampan.controllers.access.account_tokens import Sign
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings, chosen_controllers
from sampan.controllers.controller import Controller, UnknownController
from sampan.controllers.identities import account_name
from sampan.controllers.runner import ControllerRunner
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks

# As upstream's: both never work at once.
ELECTION = ElectionChoices(True, "kube-system", "kube-controller-manager", 15.0, 10.0, 2.0)


def run(settings: ControllersSettings) -> int:
    clock = SystemClock()
    progress = Progress(sys.stdout, clock)
    return component.run(settings.component, Controlling(settings, progress, clock), progress)


class Controlling:
    name = "kube-controller-manager"

    def __init__(self, settings: ControllersSettings, progress: Progress, clock: Clock) -> None:
        self._settings, self._progress, self._clock = settings, progress, clock
        self._offered = ControllerSettings("")
        self._connection: Connection | None = None

    def prepare(self, connection: Connection) -> None:
        self._connection = connection
        try:
            chosen_controllers(self._offered, self._settings.controllers)
            self._offered = self._read((connection.ca or b"").decode())
        except (UnknownController, OSError, ValueError) as error:
            raise CannotStart(str(error)) from error

    def election(self) -> ElectionChoices:
        return component.settled(self._settings.component.election, ELECTION)

    async def work(self, client: RestClient, metrics: Metrics) -> None:
        """New each time: some controllers have a memory, and caches grow old."""
        informers = Informers(client, clock=self._clock)
        chosen = chosen_controllers(self._offered, self._settings.controllers)
        assert self._connection is not None
        accounts = AccountClients(client, self._connection, self._clock)
        tasks = Tasks("controllers' accounts")
        try:
            acting_as = await self._identities(client, accounts, chosen)
            if acting_as is not None:
                tasks.supervise("tokens", accounts.keep_fresh)
            runner = ControllerRunner(
                client, informers, self._clock, metrics, chosen, acting_as=acting_as
            )
            await runner.run()
        finally:
            await tasks.stop()
            await informers.stop()
            await accounts.close()

    async def _identities(
        self, client: RestClient, accounts: AccountClients, chosen: list[Controller]
    ) -> Callable[[str], Client] | None:
        if not self._settings.account_credentials:
            return None
        names = {controller.name: account_name(controller.name) for controller in chosen}
        await accounts.obtain(account for account in names.values() if account)

        def acting_as(controller: str) -> Client:
            account = names[controller]
            return accounts.of(account) if account else client

        return acting_as

    def _read(self, root_ca: str) -> ControllerSettings:
        """Raises OSError, ValueError."""
        settings = self._settings
        if settings.root_ca_file:
            root_ca = Path(settings.root_ca_file).read_text()
        ca = None
        if settings.signing_cert_file:
            key = Path(settings.signing_key_file).read_bytes()
            ca = Ca(Path(settings.signing_cert_file).read_bytes(), key)
        sign = _token_signer(settings.account_key_file)
        for cidr in settings.cluster_cidrs:
            ipaddress.ip_network(cidr)
        if ca is None:
            self._progress.warn("no --cluster-signing-cert-file: certificate requests wait")
        if sign is None:
            self._progress.warn("no --service-account-private-key-file: token secrets stay empty")
        return ControllerSettings(root_ca, ca, sign, settings.cluster_cidrs)


def _token_signer(key_file: str) -> Sign | None:
    if not key_file:
        return None
    # Only whoever fills secrets with tokens needs the cryptography.
    from sampan.apiserver.authn.tokens import TokenSigner

    return TokenSigner(Path(key_file).read_bytes(), "").legacy_token

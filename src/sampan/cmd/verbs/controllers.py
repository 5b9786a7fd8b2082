"""`sampan controllers`: the controllers as a process of their own, with an API server elsewhere.

Job: settings → the controllers that work while the process leads.
"""

import random
import sys
from pathlib import Path

from sampan.apiserver.authn.tokens import TokenSigner
from sampan.client.account_identity import Account, AccountIdentity
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.kubeconfig import Connection
from sampan.client.rest import Caller, RestClient, context_of, without_identity
from sampan.cmd.cluster import component
from sampan.cmd.cluster.node.cluster_configuration import ClusterConfiguration, publish
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ControllersSettings, ElectionChoices
from sampan.controllers.access.account_tokens import Sign
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings, chosen_controllers
from sampan.controllers.controller import UnknownController
from sampan.controllers.identities import account_name
from sampan.controllers.runner import ControllerRunner
from sampan.core.clock import Clock, SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.metrics import Metrics

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
        accounts = self._accounts(client) if self._settings.account_credentials else None
        runner = ControllerRunner(
            client, informers, self._clock, metrics, chosen,
            acting_as=accounts.client_of if accounts is not None else None,
        )  # fmt: skip
        try:
            # Before nodes get their ranges: who has one finds the rest.
            known = ClusterConfiguration(",".join(self._settings.cluster_cidrs))
            await publish(client, known)
            await runner.run()
        finally:
            await informers.stop()
            if accounts is not None:
                await accounts.close()

    def _accounts(self, client: RestClient) -> "Accounts":
        assert self._connection is not None
        return Accounts(client, self._connection, self._clock)

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
        if ca is None:
            self._progress.warn("no --cluster-signing-cert-file: certificate requests wait")
        if sign is None:
            self._progress.warn("no --service-account-private-key-file: token secrets stay empty")
        return ControllerSettings(root_ca, ca, sign, settings.cluster_cidrs, clock=self._clock)


class Accounts:
    """Clients of the controllers' service accounts, as upstream's
    --use-service-account-credentials; one pool of connections for all of them."""

    def __init__(self, own: RestClient, connection: Connection, clock: Clock) -> None:
        self._own, self._server, self._clock = own, connection.server, clock
        self._http = HttpClient(
            ssl_context=context_of(without_identity(connection)),
            server_hostname=connection.tls_server_name or None,
        )

    def client_of(self, controller: str) -> Client:
        name = account_name(controller)
        if not name:
            return self._own
        account = Account("kube-system", name, is_ours=True)
        identity = AccountIdentity(self._own, account, self._clock)
        caller = Caller(identity, f"sampan-kube-controller-manager/{name}")
        return RestClient(self._http, self._server, caller, clock=self._clock, rng=random.Random())

    async def close(self) -> None:
        await self._http.close()


def _token_signer(key_file: str) -> Sign | None:
    if not key_file:
        return None
    # Only whoever fills secrets with tokens needs the cryptography.
    return TokenSigner(Path(key_file).read_bytes(), "").legacy_token

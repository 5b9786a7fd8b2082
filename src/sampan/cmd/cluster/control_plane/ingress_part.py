"""The ingress controller of `sampan up --ingress`.

Job: settings → listeners on the machine, and the controller behind them; start and stop it.
Invariant: a port that cannot be had is said before anything else starts.
Owner: the process that has the controllers.
"""

import ipaddress
import random
import socket
import ssl
from collections.abc import Callable

from sampan.api.objects import Obj
from sampan.client.contract import Client
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.pki import Leaf, Pki
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock
from sampan.core.tls import server_context
from sampan.network.ingress.ingress import Ingress, IngressSettings

Bind = Callable[[str, int], socket.socket]


class IngressPart:
    def __init__(self, settings: UpSettings, data: DataDir, bind: Bind) -> None:
        """Raises CannotStart."""
        assert settings.ingress is not None
        self._address, self._data = settings.bind_address, data
        self._http, self._https = _bound(settings, bind)
        self._ingress: Ingress | None = None

    async def start(
        self, client: Client, node_address: str, progress: Progress, clock: Clock
    ) -> None:
        with progress.step("ingress") as step:
            settings = IngressSettings(
                self._http, self._https, [address_of(self._address, node_address)],
                lambda: _own_certificate(self._data, clock),
            )  # fmt: skip
            self._ingress = Ingress(settings, client, clock, random.Random())
            await self._ingress.start()
            ports = [each.getsockname()[1] for each in (self._http, self._https)]
            host = "localhost" if _is_loopback(self._address) else self._address
            step.detail = f"class sampan at http://{host}:{ports[0]} and https://{host}:{ports[1]}"

    async def stop(self) -> None:
        if self._ingress is not None:
            await self._ingress.stop()
        self._http.close()
        self._https.close()


def address_of(bind_address: str, node_address: str) -> Obj:
    """As an Ingress' status has it."""
    address = ipaddress.ip_address(bind_address)
    if address.is_loopback:
        return {"hostname": "localhost"}
    return {"ip": node_address if address.is_unspecified else bind_address}


def _bound(settings: UpSettings, bind: Bind) -> tuple[socket.socket, socket.socket]:
    """Raises CannotStart."""
    choices, bound = settings.ingress, []
    assert choices is not None
    for port in (choices.http_port, choices.https_port):
        try:
            bound.append(bind(settings.bind_address, port))
        except OSError as error:
            for other in bound:
                other.close()
            why = (error.strerror or str(error)).lower()
            raise CannotStart(
                f"--ingress: port {port} of {settings.bind_address}: {why}; others are given by "
                "--ingress-ports 8080,8443"
            ) from error
    return bound[0], bound[1]


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _own_certificate(data: DataDir, clock: Clock) -> ssl.SSLContext:
    """For names that no Secret is for: who trusts the cluster's CA trusts it for localhost."""
    # Cryptography is imported for it: not before somebody comes by TLS.
    from sampan.cmd.cluster.certificates.signing import ensure_signed_by

    keys = Pki(data.pki)
    leaf = Leaf("ingress", "sampan ingress", names=("localhost", "127.0.0.1", "::1"))
    ensure_signed_by(keys, keys.root, [leaf], clock)
    return server_context(keys.certificate(leaf.file), keys.key(leaf.file))

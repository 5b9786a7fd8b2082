"""The port of a scheduler or controller process: is it healthy, and what does it measure?

Job: /healthz, /livez, /readyz to everybody; /metrics, /metrics/slis and the rest to whom the API
    allows the path (upstream's delegated authentication and authorization).
Owner: the process; it says what is wrong with its lease.
"""

import socket
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

import orjson

from sampan.api import features
from sampan.api.errors import ApiError, Forbidden, InternalError, NotAcceptable
from sampan.api.resources import CONFIG_MAPS
from sampan.api.zpages.zpages import ZPages
from sampan.client.contract import Client
from sampan.client.delegated_access import Caller, DelegatedAccess
from sampan.cmd.cluster import pki
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.served_api import listening_socket
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ServingChoices
from sampan.core.clock import Clock
from sampan.core.health_checks import Check, HealthChecks, is_health_path, nothing_wrong
from sampan.core.http.messages import Request, Response
from sampan.core.http.server import Server
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tls import server_context

log = get_logger(__name__)
ANONYMOUS = Caller("system:anonymous", ("system:unauthenticated",))
CLIENT_CA = ("kube-system", "extension-apiserver-authentication")  # a ConfigMap
LOOK_SECONDS = 5.0
GRACE_SECONDS = 1.0
_PATHS = ("/healthz", "/livez", "/metrics", "/readyz")
_TEXT = (("content-type", "text/plain; version=0.0.4"),)
_JSON = (("content-type", "application/json"),)


class ComponentServer:
    zpages: ZPages | None = None  # what it shows of itself

    def __init__(
        self,
        settings: ServingChoices,
        access: DelegatedAccess,
        checks: Mapping[str, Check],
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._settings, self._access = settings, access
        self._metrics, self._clock = metrics, clock
        self._health = HealthChecks(lambda _kind: {"ping": nothing_wrong, **checks})
        self._server: Server | None = None
        self._tls: ssl.SSLContext | None = None

    async def start(self) -> None:
        """Nothing, where no port is asked for. Raises CannotStart."""
        settings = self._settings
        if settings.port:
            await self.start_on(
                listening_socket(settings.bind_address, settings.port, "--secure-port")
            )

    async def start_on(self, listening: socket.socket) -> None:
        """Raises CannotStart."""
        tls = self._tls = serving_context(self._settings, self._clock)
        server = Server(self.answer, ssl_context=tls, clock=self._clock, name="component http")
        await server.start_on(listening)
        self._server = server

    async def learn_client_ca(self, client: Client) -> None:
        """Once the cluster says who signs its users' certificates, callers may show one."""
        assert self._tls is not None
        while True:
            try:
                found = await client.get(CONFIG_MAPS, *CLIENT_CA)
            except ApiError as error:
                log.info("client CA not known yet", error=error)
                await self._clock.sleep(LOOK_SECONDS)
                continue
            if pem := (found.get("data") or {}).get("client-ca-file"):
                try:
                    self._tls.load_verify_locations(cadata=pem)
                except ssl.SSLError as error:
                    log.error("client CA unusable", error=error)
                    return
                self._tls.verify_mode = ssl.CERT_OPTIONAL
            return

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(GRACE_SECONDS)

    async def answer(self, request: Request) -> Response:
        if not self._is_open(request.path):
            refused = await self._refusal(request)
            if refused is not None:
                return refused
        if request.method not in ("GET", "HEAD"):
            return Response(405, _TEXT, b"Method Not Allowed\n")
        if is_health_path(request.path):
            return self._health.reply(request)
        match request.path:
            case "/metrics":
                return Response(200, _TEXT, self._metrics.render().encode())
            case "/metrics/slis":
                return Response(200, _TEXT, self._health.slis().encode())
        return self._zpage(request) or Response(404, _TEXT, b"404 page not found\n")

    def _zpage(self, request: Request) -> Response | None:
        if self.zpages is None:
            return None
        try:
            return self.zpages.reply(request, self._clock.now())
        except NotAcceptable as error:
            return _failure(error)

    def _is_open(self, path: str) -> bool:
        """As `--authorization-always-allow-paths`: `/x/*` is all that is below `/x/`."""
        for allowed in self._settings.open_paths:
            if path == allowed or (allowed.endswith("*") and path.startswith(allowed[:-1])):
                return True
        return False

    async def _refusal(self, request: Request) -> Response | None:
        verb = request.method.lower()
        try:
            caller = await self._access.caller(request) or ANONYMOUS
            attributes = {"path": request.path, "verb": verb}
            if await self._access.may(caller, "nonResourceAttributes", attributes):
                return None
        except ApiError as error:
            return _failure(InternalError(f"the API could not be asked: {error}"))
        return _failure(
            Forbidden(f'forbidden: User "{caller.user}" cannot {verb} path "{request.path}"')
        )


def zpages_of(name: str, flags: Mapping[str, str], clock: Clock) -> ZPages:
    """Of a process by the name of upstream's, with its flags."""
    has_flags = bool(flags) and features.enabled("ComponentFlagz")
    served = (*_PATHS, "/flagz") if has_flags else _PATHS
    return ZPages(name, clock.now(), flags, lambda: served)


def serving_context(settings: ServingChoices, clock: Clock) -> ssl.SSLContext:
    """As the files say; without them a certificate for this process's life. Raises CannotStart."""
    if bool(settings.certificate) != bool(settings.key):
        raise CannotStart("--tls-cert-file and --tls-private-key-file belong together")
    client_ca = settings.client_ca or None
    try:
        if settings.certificate:
            return server_context(settings.certificate, settings.key, client_ca)
        with tempfile.TemporaryDirectory(prefix="sampan-") as directory:
            leaf = pki.Leaf("serving", "sampan", names=("localhost", "127.0.0.1", "::1"))
            ensure(Path(directory), [leaf], clock)
            paths = pki.Pki(Path(directory))
            return server_context(paths.certificate(leaf.file), paths.key(leaf.file), client_ca)
    except (OSError, ssl.SSLError) as error:
        raise CannotStart(f"the port for health and metrics: {error}") from error


def _failure(error: ApiError) -> Response:
    return Response(error.code, _JSON, orjson.dumps(error.status()))

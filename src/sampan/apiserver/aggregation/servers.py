"""Aggregated servers: the group version of each APIService, and how to reach it.

Job: follow the APIServices; for a path that another server serves, say which, and have a client for
    it that knows whom to expect and shows who we are.
Invariant: a group and version is another server's from the step in which the watch cache has its
    APIService to the step in which it is gone.
Invariant: connections lead to a ready endpoint of the service, at an address that may be proxied
    to, and the server must prove the service's name (unless insecureSkipTLSVerify says otherwise).
Owner: the API server.
"""

import os
import random
import ssl
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable

from sampan.api.calls import Item
from sampan.api.objects import Obj, labels_of, name_of, spec_of
from sampan.api.resources import API_SERVICES, ENDPOINT_SLICES, SERVICES
from sampan.api.rules.conditions import is_true
from sampan.apiserver.aggregation.availability import port_of
from sampan.apiserver.outside.service_reference import endpoints_of
from sampan.apiserver.registry.api_services import MANAGED, SCRIPTED_VERSIONS
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.watch.listener import follow
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient, PeerCheck
from sampan.core.http.origin import Origin
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.tls import client_context

log = get_logger(__name__)

GroupVersion = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AggregatedServer:
    """What one APIService says, and the way there."""

    name: str
    group: str
    version: str
    service: Obj  # spec.service
    is_available: bool
    http: HttpClient | None  # None: `trouble` says why there is none
    trouble: str = ""
    is_scripted: bool = False  # this server itself answers, from annotations

    @property
    def port(self) -> int:
        return port_of(self.service)

    @property
    def path(self) -> str:
        """Of its discovery."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


@dataclass(frozen=True, slots=True)
class _Trust:
    """Whom to believe that they are the server."""

    server_name: str
    bundle: str  # base64; empty: whom the machine trusts
    anybody: bool


@dataclass(frozen=True, slots=True)
class _Known:
    trust: _Trust
    context: ssl.SSLContext
    client: HttpClient


class AggregatedServers:
    def __init__(self, registry: Registry, settings: ApiServerSettings, rng: random.Random) -> None:
        self._registry, self._settings, self._rng = registry, settings, rng
        self.by_version: dict[GroupVersion, AggregatedServer] = {}
        self._clients: dict[str, _Known] = {}  # by the APIService's name
        self._tasks = Tasks("aggregated-servers")
        self._listeners: list[Callable[[str], None]] = []
        # Checks do not verify: whoever owns the network may as well spoil the status.
        self._unverifying = self._context(verify=False)
        self.unverified = HttpClient(ssl_context=self._unverifying, allows=settings.proxied_address)
        self._certificate = self._certificate_state()
        follow(registry.kind(API_SERVICES), self._changed, self._reloaded)

    def when_changed(self, listener: Callable[[str], None]) -> None:
        """Called with the name of an APIService that came, went or means another server."""
        self._listeners.append(listener)

    def at(self, path: str) -> AggregatedServer | None:
        """Who serves it, where that is not this server."""
        if not self.by_version or not path.startswith("/apis/"):
            return None
        parts = path.split("/", 4)
        return self.by_version.get((parts[2], parts[3])) if len(parts) > 3 else None

    def start(self) -> None:
        self._reloaded()

    async def stop(self) -> None:
        await self._tasks.stop()
        for known in self._clients.values():
            await known.client.close()
        await self.unverified.close()

    def origins(self, reference: Obj) -> list[Origin]:
        """Every endpoint behind a spec.service. Raises CallFailed."""
        namespace, name = str(reference.get("namespace")), str(reference.get("name"))
        service = self._registry.find(SERVICES, namespace, name)
        slices = self._registry.find_in(ENDPOINT_SLICES, namespace)
        found = endpoints_of(name, port_of(reference), service, slices)
        return [Origin("https", host, port) for host, port in found]

    def origin(self, server: AggregatedServer) -> Origin:
        """Raises CallFailed."""
        return self._rng.choice(self.origins(server.service))

    def _changed(self, before: Item | None, now: Item | None) -> None:
        known = now or before
        assert known is not None
        name = name_of(known.obj)
        if before is not None:
            self.by_version.pop(_version(before.obj), None)
        if now is not None and spec_of(now.obj).get("service") is not None:
            self.by_version[_version(now.obj)] = self._server(now.obj)
        else:
            self._drop_client(name)
            if now is not None and _is_scripted(now.obj):
                self.by_version[_version(now.obj)] = AggregatedServer(
                    name, *_version(now.obj), {}, True, None, is_scripted=True
                )
        if before is None or now is None or spec_of(before.obj) != spec_of(now.obj):
            for listener in self._listeners:
                listener(name)

    def _reloaded(self) -> None:
        """At the start, and when the cache has been read anew."""
        items = self._registry.kind(API_SERVICES).items
        gone = {server.name for server in self.by_version.values()} - set(items)
        self.by_version = {}
        for name in gone:
            self._drop_client(name)
            for listener in self._listeners:
                listener(name)
        for item in items.values():
            self._changed(None, item)

    def _server(self, api_service: Obj) -> AggregatedServer:
        name, spec = name_of(api_service), spec_of(api_service)
        trouble, client = "", None
        try:
            client = self._client(name, spec)
        except (NotBase64, ValueError, ssl.SSLError, OSError) as error:
            trouble = f"unable to load root certificates: {error}"
        group, version = _version(api_service)
        available = is_true(api_service, "Available")
        return AggregatedServer(name, group, version, spec["service"], available, client, trouble)

    def _client(self, name: str, spec: Obj) -> HttpClient:
        """Raises ValueError, OSError."""
        service = spec["service"]
        trust = _Trust(
            f"{service.get('name')}.{service.get('namespace')}.svc",
            str(spec.get("caBundle") or ""),
            bool(spec.get("insecureSkipTLSVerify")),
        )
        known = self._clients.get(name)
        if known is not None and known.trust == trust:
            return known.client
        self._drop_client(name)
        bundle = b"" if trust.anybody else b64decode(trust.bundle)
        # A bundle is judged as Go does, by us; without one OpenSSL and the machine's trust do.
        context = self._context(verify=not trust.anybody and not bundle)
        client = HttpClient(
            ssl_context=context,
            server_hostname=trust.server_name,
            checks=_checks(bundle) if bundle else None,
            allows=self._settings.proxied_address,
        )
        self._clients[name] = _Known(trust, context, client)
        return client

    def _drop_client(self, name: str) -> None:
        known = self._clients.pop(name, None)
        if known is not None:
            self._tasks.start(f"close {name}", known.client.close())

    def follow_certificate(self) -> None:
        """Ours is renewed by others: new connections show the one that the files hold now."""
        own, found = self._settings.proxy_client, self._certificate_state()
        if own is None or found in (self._certificate, 0):
            return
        try:
            for context in (self._unverifying, *(item.context for item in self._clients.values())):
                context.load_cert_chain(own.cert_path, own.key_path)
        except (ssl.SSLError, OSError) as error:
            log.error("the front proxy's certificate cannot be loaded", error=error)
            return  # both files may not be there yet
        self._certificate = found

    def _certificate_state(self) -> int:
        """Another one for another certificate; 0: there is none."""
        own = self._settings.proxy_client
        try:
            return 0 if own is None else os.stat(own.cert_path).st_mtime_ns
        except OSError:
            return 0

    def _context(self, verify: bool) -> ssl.SSLContext:
        own = self._settings.proxy_client
        return client_context(
            cert_path=own.cert_path if own is not None else None,
            key_path=own.key_path if own is not None else None,
            verify=verify,
        )


def _checks(bundle: bytes) -> PeerCheck:
    """Raises ValueError."""
    # With the first of them: it loads a library.
    from sampan.core.certificates.chain import checked_by

    return checked_by(bundle)


def _is_scripted(api_service: Obj) -> bool:
    """Somebody has said that this server has the metrics of others."""
    return _version(api_service) in SCRIPTED_VERSIONS and MANAGED not in labels_of(api_service)


def _version(api_service: Obj) -> GroupVersion:
    spec = spec_of(api_service)
    return str(spec.get("group") or ""), str(spec.get("version") or "")

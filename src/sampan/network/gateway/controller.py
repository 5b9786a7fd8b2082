"""Gateway controller: GatewayClasses, Gateways and HTTPRoutes become a table; their status.

Job: judge everything anew when something changed; write the statuses that differ; answer whom a
    request is for.
Invariant: Gateways of other classes are neither served nor written to; of a route only what is said
    of our Gateways is ours.
Invariant: nothing happens in a cluster without the definitions of the Gateway API.
Owner: one per cluster.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sampan.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import NAMESPACES, SECRETS, SERVICES, Resource
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Response
from sampan.core.http.origin import Origin
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.network.gateway.answering import answer_of
from sampan.network.gateway.definitions import CLASSES, GATEWAYS, GRANTS, ROUTES, Definitions
from sampan.network.gateway.judgement import Judgement, backend_of, judged
from sampan.network.gateway.rules import BackendRef
from sampan.network.gateway.table import GatewayTable
from sampan.network.gateway.world import CONTROLLER, Verdict, World
from sampan.network.ingress.backends import Unavailable
from sampan.network.ingress.certificates import TLS_SECRET
from sampan.network.ingress.forwarding import Asked, Way
from sampan.network.ingress.routing import Backend

CLASS = "sampan"
RETRY_SECONDS = 1.0
_PROTOCOLS = {"http": "HTTP", "https": "HTTPS"}
_STANDARD = {"http": 80, "https": 443}
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    addresses: Sequence[Obj]  # as an Ingress' status has them
    ports: Mapping[str, int]  # of this machine, by scheme


class GatewayController:
    def __init__(
        self, settings: GatewaySettings, client: Client, informers: Informers,
        endpoints: Callable[[Backend], Sequence[Origin] | Unavailable], clock: Clock,
        rng: random.Random,
    ) -> None:  # fmt: skip
        self._settings, self._client, self._clock, self._rng = settings, client, clock, rng
        self._informers, self._endpoints = informers, endpoints
        self._services = informers.of(SERVICES)
        self._secrets = informers.of(SECRETS, field_selector=f"type={TLS_SECRET}")
        self._namespaces = informers.of(NAMESPACES)
        self._kinds = Definitions(informers, self._changed, self._class_may_be_missing)
        self._judgement: Judgement | None = None  # None: to be made anew
        self._dirty, self._missing = asyncio.Event(), False
        self._tasks = Tasks("gateway controller")

    # What requests ask.

    def table(self) -> GatewayTable:
        return self._judged().table

    def find(self, asked: Asked) -> Way | Unavailable | Response | None:
        """None where no HTTPRoute is for it."""
        protocol = _PROTOCOLS[asked.listener.scheme]
        found = self.table().find(protocol, asked.host, asked.path, asked.request)
        if found is None:
            return None
        served = {_STANDARD[scheme]: port for scheme, port in self._settings.ports.items()}
        return answer_of(found, asked, self._resolved, served, self._rng)

    def _resolved(self, given: BackendRef) -> Sequence[Origin] | Unavailable:
        backend = backend_of(given, self._world())
        if isinstance(backend, Verdict):
            return Unavailable(500, backend.message)
        return self._endpoints(backend)

    def _judged(self) -> Judgement:
        if self._judgement is None:
            self._judgement = judged(self._world(), self._clock.now())
        return self._judgement

    def _world(self) -> World:
        ports = {
            _PROTOCOLS[scheme]: {port: port, _STANDARD[scheme]: port}
            for scheme, port in self._settings.ports.items()
        }
        return World(
            self._kinds.all(CLASSES), self._kinds.all(GATEWAYS), self._kinds.all(ROUTES),
            self._kinds.all(GRANTS), self._services.cache.get, self._secrets.cache.get,
            self._namespaces.cache.get, _addresses(self._settings.addresses), ports,
        )  # fmt: skip

    # What the API is told.

    async def start(self) -> None:
        """When everything that is built in is there; returns when every route is known."""
        for informer in (self._services, self._secrets, self._namespaces):
            informer.on_change(self._changed)
        self._kinds.start()
        await self._kinds.synced()
        self._tasks.supervise("controller", self._run)

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._ensure_class()
                await self._tell()
            except ApiError as error:
                log.warning("status of the Gateway API not written, trying again", error=error)
                await self._clock.sleep(RETRY_SECONDS)
                self._dirty.set()

    async def _ensure_class(self) -> None:
        """Where it is already, it is as its owner wants it."""
        resource = self._kinds.resource(CLASSES)
        if not self._missing or resource is None:
            return
        await self._kinds.synced()
        if not any(name_of(each) == CLASS for each in self._kinds.all(CLASSES)):
            wanted = {
                "apiVersion": resource.api_version, "kind": resource.kind,
                "metadata": {"name": CLASS}, "spec": {"controllerName": CONTROLLER},
            }  # fmt: skip
            with suppress(AlreadyExists):
                await self._client.create(resource, wanted)
        self._missing = False

    async def _tell(self) -> None:
        """What one of them cannot be told, keeps it from no other one; it is raised at the end."""
        found, failure = self._judged(), None
        for plural, pairs in (
            (CLASSES, found.classes), (GATEWAYS, found.gateways), (ROUTES, found.routes),
        ):  # fmt: skip
            resource = self._kinds.resource(plural)
            for obj, status in () if resource is None else pairs:
                assert resource is not None
                try:
                    await self._write(resource, obj, status)
                except ApiError as error:
                    failure = error
        if failure is not None:
            raise failure

    async def _write(self, resource: Resource, obj: Obj, status: Obj) -> None:
        if _says(obj, status):
            return
        revision = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        with suppress(Conflict, NotFound):  # it has changed: its change brings us here again
            await self._client.patch(
                resource, namespace_of(obj), name_of(obj), {"metadata": revision, "status": status},
                patch_type="merge", subresource="status",
            )  # fmt: skip

    # What the informers call.

    def _changed(self, _old: Obj | None, _new: Obj | None) -> None:
        self._judgement = None
        self._dirty.set()

    def _class_may_be_missing(self) -> None:
        self._missing = True
        self._changed(None, None)


def _says(obj: Obj, status: Obj) -> bool:
    present = obj.get("status") or {}
    return all(present.get(name, []) == value for name, value in status.items())


def _addresses(entries: Sequence[Obj]) -> list[Obj]:
    return [
        {"type": "IPAddress", "value": each["ip"]}
        if each.get("ip")
        else {"type": "Hostname", "value": each["hostname"]}
        for each in entries
    ]

"""Endpoint reconciler: the API servers behind the kubernetes Service.

Job: say every ten seconds that this server is there, and keep the endpoints to who said so lately.
Invariant: a server that is gone is out of the endpoints within half a minute, at once if it left in
    order; one that is there is never taken out by another.
As upstream's lease reconciler: a record with a time to live per server, under masterleases.
"""

from collections.abc import Awaitable, Callable

import orjson

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.resources import ENDPOINT_SLICES, ENDPOINTS, Resource
from sampan.apiserver.registry.generic import Registry, api_error_of
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.store.contract import KeyExists, RevisionMismatch, StoreError

PREFIX = "/registry/masterleases/"
TTL_SECONDS = 15
INTERVAL_SECONDS = 10.0
ATTEMPTS = 10

Overwrite = Callable[[Resource, Obj], Awaitable[None]]
Address = tuple[str, int]  # where a server is
log = get_logger(__name__)


class EndpointReconciler:
    def __init__(
        self, registry: Registry, settings: ApiServerSettings, overwrite: Overwrite, clock: Clock
    ) -> None:
        self._registry, self._overwrite, self._clock = registry, overwrite, clock
        self._me = (settings.advertise_address, settings.advertise_port)
        self._key = f"{PREFIX}{self._me[0]}:{self._me[1]}"

    async def once(self) -> None:
        """Raises ApiError."""
        try:
            await self._announce()
        except StoreError as error:
            raise api_error_of(error) from error
        await self._bring_up_to_date()

    async def keep_going(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._clock.sleep(INTERVAL_SECONDS)
            try:
                await self.once()
            except ApiError as error:
                log.warning(
                    "could not renew this server's lease in the kubernetes endpoints", error=error
                )

    async def leave(self) -> None:
        """So that nobody is sent here any more; what fails runs out by itself."""
        try:
            entry = await self._registry.store.get(self._key)
            if entry is not None:
                revision = await self._registry.store.delete(self._key, entry.revision)
                await self._registry.cache.reached(revision)
            await self._bring_up_to_date()
        except (ApiError, StoreError) as error:
            log.info("could not remove this server from the kubernetes endpoints", error=error)

    async def _announce(self) -> None:
        store = self._registry.store
        value = record(self._me)
        while True:
            entry = await store.get(self._key)
            try:
                if entry is None:
                    revision = await store.create(self._key, value, ttl_seconds=TTL_SECONDS)
                else:
                    revision = await store.update(
                        self._key, value, entry.revision, ttl_seconds=TTL_SECONDS
                    )
            except (KeyExists, RevisionMismatch):
                continue  # it has just run out
            await self._registry.cache.reached(revision)
            return

    async def _bring_up_to_date(self) -> None:
        """Until it is seen to be right: another server may do the same from an older view."""
        for _ in range(ATTEMPTS):
            await self._registry.cache.fresh()
            records = self._registry.cache.kind(PREFIX).items.values()
            servers = sorted(one for item in records if (one := address_in(item.obj)))
            changed = self._stale_endpoints(servers) if servers else []
            for resource, obj in changed:
                await self._overwrite(resource, obj)
            if not changed:
                return

    def _stale_endpoints(self, servers: list[Address]) -> list[tuple[Resource, Obj]]:
        wanted = (
            (ENDPOINTS, {"subsets": subsets(servers)}),
            (ENDPOINT_SLICES, slice_fields(servers)),
        )
        changed = []
        for resource, fields in wanted:
            found = self._registry.find(resource, "default", "kubernetes")
            if found is not None and any(found.get(key) != fields[key] for key in fields):
                changed.append((resource, {**found, **fields}))
        return changed


def record(address: Address) -> bytes:
    name = f"{address[0]}:{address[1]}"
    return orjson.dumps({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name},
        "subsets": subsets([address]),
    })  # fmt: skip


def address_in(found: Obj) -> Address | None:
    """None: it is not what servers write there."""
    try:
        subset = found["subsets"][0]
        ip, port = subset["addresses"][0]["ip"], subset["ports"][0]["port"]
    except (LookupError, TypeError):
        return None
    return (ip, port) if type(ip) is str and type(port) is int else None


def subsets(servers: list[Address]) -> list[Obj]:
    """Grouped by port."""
    return [
        {
            "addresses": [{"ip": ip} for ip, its in servers if its == port],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }
        for port in sorted({port for _, port in servers})
    ]


def slice_fields(servers: list[Address]) -> Obj:
    """A slice knows one set of ports: servers at another port than the first are not in it."""
    port = servers[0][1]
    return {
        "endpoints": [
            {"addresses": [ip], "conditions": {"ready": True}} for ip, its in servers if its == port
        ],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }

"""Repair of allocated cluster IPs and node ports, against the Services that exist.

Job: at the start and every few minutes: take what services have, free what nobody has.
Invariant: what a server has just taken for a service that is not stored yet is not freed: an
    address gets a minute, a port three rounds, as upstream.
"""

from sampan.api.objects import Obj, key_of, labels_of, meta_of, name_of, seconds_of
from sampan.api.resources import SERVICES
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.registry.services.allocated import allocated_to
from sampan.apiserver.registry.services.service_claims import (
    IP_ADDRESSES,
    MANAGED_BY,
    MANAGER,
    Claims,
    parent_of,
)
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Hold
from sampan.core.log import get_logger

INTERVAL_SECONDS = 180.0
ADDRESS_GRACE_SECONDS = 60.0
LEAK_ROUNDS = 3

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AddressRepairs:
    missing: list[tuple[Obj, str]]  # a service, and an address that it has
    orphans: list[tuple[Obj, str]]  # a service that is gone or has it no more, and the address


def address_repairs(services: list[Obj], addresses: list[Obj], now: float) -> AddressRepairs:
    """Pure."""
    had = {
        (key_of(service), ip): service for service in services for ip in allocated_to(service).ips
    }
    known = {name_of(address) for address in addresses}
    orphans = []
    for address in addresses:
        namespace, name = parent_of(address)
        age = now - seconds_of(meta_of(address).get("creationTimestamp") or "1970-01-01T00:00:00Z")
        ours = labels_of(address).get(MANAGED_BY) == MANAGER
        if ours and age > ADDRESS_GRACE_SECONDS:
            parent: Obj = {"metadata": {"namespace": namespace, "name": name}}
            if (key_of(parent), name_of(address)) not in had:
                orphans.append((parent, name_of(address)))
    missing = [(item, ip) for (_, ip), item in had.items() if ip not in known]
    return AddressRepairs(missing, orphans)


class Repair:
    def __init__(self, registry: Registry, claims: Claims, clock: Clock) -> None:
        self._registry, self._claims, self._clock = registry, claims, clock
        self._leaked: dict[int, int] = {}  # port → for how many rounds nobody has had it

    async def at_start(self) -> None:
        # In a store of our own nobody can be about to use what no service has.
        await self._once(LEAK_ROUNDS if self._registry.store.shared else 1)

    async def _once(self, rounds: int) -> None:
        await self._registry.cache.fresh()
        services = self._registry.find_all(SERVICES)
        found = address_repairs(services, self._registry.find_all(IP_ADDRESSES), self._clock.now())
        for service, address in found.missing:
            await self._claims.claim_address(service, address, Hold())
        for service, address in found.orphans:
            log.warning("releasing an IPAddress without a service", address=address)
            await self._claims.release_addresses(service, [address])
        had = self._claims.bits_of(port for item in services for port in allocated_to(item).ports)
        await self._claims.change_ports(lambda bits: self._ports(bits, had, rounds))

    async def keep_going(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._clock.sleep(INTERVAL_SECONDS)
            await self._once(LEAK_ROUNDS)

    def _ports(self, bits: int, had: int, rounds: int) -> int:
        leaked = self._claims.ports_of(bits & ~had)
        self._leaked = {port: self._leaked.get(port, 0) + 1 for port in leaked}
        freed = {port for port, seen in self._leaked.items() if seen >= rounds}
        if freed:
            log.warning("releasing node ports without a service", ports=sorted(freed))
        return (bits | had) & ~self._claims.bits_of(freed)

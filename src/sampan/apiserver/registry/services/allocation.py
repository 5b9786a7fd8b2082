"""Allocator of cluster IPs and node ports.

Job: give a service its addresses and ports, keep them across updates, take them back at its end.
Invariant: an address or port is never given to two services: who gets it is decided in the store
    (service_claims.py), so that it holds between several servers too.
Invariant: what was taken for a write that is then refused is given back; what was taken for a write
    whose outcome is not known is left to the repair.
"""

import ipaddress
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from sampan.api.errors import ApiError, FieldError, invalid, invalid_value
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.rules.service_families import addresses_of, family_of, settle_families
from sampan.api.rules.service_ranges import Network, network_of, networks_to_give_from
from sampan.apiserver.registry.services.allocated import AllAllocated, Allocated, allocated_to
from sampan.apiserver.registry.services.service_claims import Claims
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Hold, Outcome

NODE_PORT_TYPES = ("NodePort", "LoadBalancer")


@dataclass(frozen=True, slots=True)
class AllocationRequest:
    """A service for which something is to be found."""

    service: Obj
    old: Obj | None
    had: Allocated
    taken: Allocated
    dry_run: bool

    @property
    def spec(self) -> Obj:
        return spec_of(self.service)

    def refuse(self, cause: FieldError) -> ApiError:
        return invalid("Service", "", name_of(self.service), [cause])


class ServiceRanges:
    """Where addresses come from."""

    def __init__(self, own: Sequence[str], cidrs: Callable[[], Iterable[Obj]]) -> None:
        """`own`: one of each family, the one that services have by default first; `cidrs`: the
        ServiceCIDRs that there are now."""
        self._own, self._cidrs = own, cidrs
        self.families = [family_of(text) for text in own]
        # The `kubernetes` service's own is the first of them.
        self.first_addresses = [str(network_of(text)[1]) for text in own]

    def networks(self, family: str) -> list[Network]:
        return networks_to_give_from(self._own, self._cidrs(), family)


class Allocator:
    def __init__(
        self,
        ranges: ServiceRanges,
        ports: range,
        allocated: AllAllocated,
        claims: Claims,
        rng: random.Random,
    ) -> None:
        self._ranges = ranges
        self._ports = ports
        self._allocated = allocated
        self._claims = claims
        self._rng = rng

    @property
    def first_address(self) -> str:
        """The `kubernetes` service's own."""
        return self._ranges.first_addresses[0]

    async def allocate(self, service: Obj, old: Obj | None, dry_run: bool, hold: Hold) -> None:
        """Fill in what the service needs. It has it when the write is done, and what only `old` had
        is free again; where the write is refused, everything is as before."""
        request = AllocationRequest(service, old, allocated_to(old), Allocated(), dry_run)
        if not dry_run:
            hold.add(partial(self._finish, request))
        await self._allocate(request)

    async def _finish(self, request: AllocationRequest, outcome: Outcome) -> None:
        service, had = request.service, request.had
        match outcome:
            case Outcome.COMMITTED:
                has = allocated_to(service)
                await self._release(service, Allocated(had.ips - has.ips, had.ports - has.ports))
            case Outcome.RELEASED:
                await self._release(service, request.taken)
            case Outcome.UNKNOWN:
                pass  # the repair sees what became of it

    async def removed(self, service: Obj) -> None:
        """The service is no longer stored."""
        await self._release(service, allocated_to(service))

    async def _release(self, service: Obj, what: Allocated) -> None:
        await self._claims.release_addresses(service, sorted(what.ips))
        await self._claims.release_ports(what.ports)

    async def _allocate(self, request: AllocationRequest) -> None:
        service = request.service
        spec = service.setdefault("spec", {})
        if spec.get("type") == "ExternalName":
            return
        wrong = settle_families(spec, spec_of(request.old or {}), self._ranges.families)
        if wrong:
            raise invalid("Service", "", name_of(service), wrong)
        await self._allocate_ips(request)
        spec.setdefault("internalTrafficPolicy", "Cluster")
        if needs_node_ports(spec) or needs_health_port(spec):
            await self._allocate_ports(request)

    async def _allocate_ips(self, request: AllocationRequest) -> None:
        """Of each of its families, in their order."""
        spec = request.spec
        asked = addresses_of(spec)
        if asked[:1] == ["None"]:
            given = ["None"]
        else:
            asked_ips = [*asked, "", ""]
            given = [
                await self._allocate_ip(request, family, asked_ips[index])
                for index, family in enumerate(spec["ipFamilies"])
            ]
        spec["clusterIP"], spec["clusterIPs"] = given[0], given

    async def _allocate_ip(self, request: AllocationRequest, family: str, asked: str) -> str:
        if asked in request.had.ips:
            return asked
        if asked:
            new = self._is_inside(request, asked)
            if new and (self._allocated.has_ip(asked) or not await self._claim_ip(request, asked)):
                why = f"failed to allocate IP {asked}: provided IP is already allocated"
                raise request.refuse(
                    invalid_value("spec.clusterIPs", addresses_of(request.spec), why)
                )
            return asked
        lost: set[str] = set()
        while True:
            found = self._free_ip(request, family, lost)
            if await self._claim_ip(request, found):
                return found
            lost.add(found)

    async def _claim_ip(self, request: AllocationRequest, ip: str) -> bool:
        if request.dry_run:
            return True
        with Hold() as claim:
            claim.add(lambda outcome: request.taken.note(outcome, {ip}, set()))
            return await self._claims.claim_address(request.service, ip, claim)

    def _is_inside(self, request: AllocationRequest, asked: str) -> bool:
        try:
            address = ipaddress.ip_address(asked)
        except ValueError:
            return False  # validation says what is wrong with it
        if not any(address in network for network in self._ranges.networks(family_of(asked))):
            mismatch = "the provided network does not match the current range"
            why = f"failed to allocate IP {asked}: {mismatch}"
            raise request.refuse(invalid_value("spec.clusterIPs", addresses_of(request.spec), why))
        return True

    def _free_ip(self, request: AllocationRequest, family: str, lost: Collection[str]) -> str:
        kept = {*lost, *self._ranges.first_addresses}
        for network in self._ranges.networks(family):
            found = self._free_ip_of(network, kept)
            if found:
                return found
        why = "failed to allocate a serviceIP: range is full"
        raise request.refuse(invalid_value("spec.clusterIPs", [], why))

    def _free_ip_of(self, network: Network, kept: Collection[str]) -> str:
        """Empty where there is none. The network's own and the broadcast address are not given."""
        size = network.num_addresses
        last = size - 1 if network.version == 4 else size
        start = self._rng.randrange(size)
        for step in range(min(size, 1 << 20)):
            offset = (start + step) % size
            if not 0 < offset < last:
                continue
            address = str(network[offset])
            if address not in kept and not self._allocated.has_ip(address):
                return address
        return ""

    async def _allocate_ports(self, request: AllocationRequest) -> None:
        """Those that were asked for, else free ones; all are taken at once."""
        had, used = request.had.ports, self._allocated.ports()
        places = port_places(request.spec)
        asked = {place.asked for place in places if place.asked}
        self._check_ports(request, places, used - had)
        left = [place for place in places if not place.asked]
        while True:
            chosen = self._free_ports(request, left, used | asked | had)
            wanted = {*asked, *chosen} - had
            lost = set() if request.dry_run else await self._claim_ports(wanted, request.taken)
            if not lost:
                break
            self._check_ports(request, places, lost)
            used |= lost
        for place, port in zip(left, chosen, strict=True):
            place.holder[place.field] = port

    async def _claim_ports(self, wanted: set[int], taken: Allocated) -> set[int]:
        """Those that somebody has."""
        if not wanted:
            return set()
        with Hold() as claim:
            claim.add(lambda outcome: taken.note(outcome, set(), wanted))
            return await self._claims.claim_ports(wanted, claim)

    def _check_ports(
        self, request: AllocationRequest, places: list["Place"], used: set[int]
    ) -> None:
        own: set[tuple[str, int]] = set()
        for place in places:
            if place.asked and place.asked not in self._ports:
                valid = f"{self._ports.start}-{self._ports.stop - 1}"
                why = (
                    f"provided port is not in the valid range. The range of valid ports is {valid}"
                )
                raise request.refuse(invalid_value(place.path, place.asked, why))
            same = (place.holder.get("protocol") or "", place.asked)
            if place.asked in used or (place.asked and same in own):
                why = "provided port is already allocated"
                raise request.refuse(invalid_value(place.path, place.asked, why))
            own.add(same)

    def _free_ports(
        self, request: AllocationRequest, places: list["Place"], used: set[int]
    ) -> list[int]:
        free = [port for port in self._ports if port not in used]
        if len(free) < len(places):
            why = "failed to allocate a nodePort: range is full"
            raise request.refuse(invalid_value(places[0].path, 0, why))
        return self._rng.sample(free, len(places))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service names a node port."""

    holder: Obj
    field: str
    path: str

    @property
    def asked(self) -> int:
        return self.holder.get(self.field) or 0


def port_places(spec: Obj) -> list[Place]:
    places = []
    if needs_node_ports(spec):
        places += [
            Place(port, "nodePort", f"spec.ports[{index}].nodePort")
            for index, port in enumerate(spec.get("ports") or ())
        ]
    if needs_health_port(spec):
        places.append(Place(spec, "healthCheckNodePort", "spec.healthCheckNodePort"))
    return places


def needs_node_ports(spec: Obj) -> bool:
    # What asks for ports itself gets them, whether they would be given by themselves or not.
    return spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer"
        and (
            spec.get("allocateLoadBalancerNodePorts") is not False
            or any(port.get("nodePort") for port in spec.get("ports") or ())
        )
    )


def needs_health_port(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"

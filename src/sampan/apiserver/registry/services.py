"""Services: cluster IPs and node ports.

Job: give a service its addresses and ports, keep them across updates, take them back at its end.
Invariant: an address or port is never given to two services: who gets it is decided in the store
    (service_claims.py), so that it holds between several servers too.
Invariant: what was taken for a write that is then refused is given back; what was taken for a write
    whose outcome is not known is left to the repair.
"""

import ipaddress
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from sampan.api.errors import ApiError, FieldError, invalid, invalid_value
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.rules.service_families import addresses_of, family_of, settle_families
from sampan.api.rules.service_ranges import Network, network_of, networks_to_give_from
from sampan.api.validation.network.service import validate_families
from sampan.apiserver.registry.service_claims import Claims
from sampan.apiserver.registry.service_holdings import Holdings, HoldingsOfAll, holdings
from sampan.apiserver.registry.strategy import Strategy, path_getter
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Hold, Outcome

NODE_PORT_TYPES = ("NodePort", "LoadBalancer")


@dataclass(frozen=True, slots=True)
class Wish:
    """A service for which something is to be found."""

    service: Obj
    old: Obj | None
    had: Holdings
    taken: Holdings
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
        held: HoldingsOfAll,
        claims: Claims,
        rng: random.Random,
    ) -> None:
        self._ranges = ranges
        self._ports = ports
        self._held = held
        self._claims = claims
        self._rng = rng

    @property
    def first_address(self) -> str:
        """The `kubernetes` service's own."""
        return self._ranges.first_addresses[0]

    async def allocate(self, service: Obj, old: Obj | None, dry_run: bool, hold: Hold) -> None:
        """Fill in what the service needs. It has it when the write is done, and what only `old` had
        is free again; where the write is refused, everything is as before."""
        wish = Wish(service, old, holdings(old), Holdings(), dry_run)
        if not dry_run:
            hold.add(partial(self._settle, wish))
        await self._give(wish)

    async def _settle(self, wish: Wish, outcome: Outcome) -> None:
        service, had = wish.service, wish.had
        match outcome:
            case Outcome.COMMITTED:
                has = holdings(service)
                await self._give_back(service, Holdings(had.ips - has.ips, had.ports - has.ports))
            case Outcome.RELEASED:
                await self._give_back(service, wish.taken)
            case Outcome.UNKNOWN:
                pass  # the repair sees what became of it

    async def removed(self, service: Obj) -> None:
        """The service is no longer stored."""
        await self._give_back(service, holdings(service))

    async def _give_back(self, service: Obj, what: Holdings) -> None:
        await self._claims.give_back_addresses(service, sorted(what.ips))
        await self._claims.give_back_ports(what.ports)

    async def _give(self, wish: Wish) -> None:
        service = wish.service
        spec = service.setdefault("spec", {})
        if spec.get("type") == "ExternalName":
            return
        wrong = settle_families(spec, spec_of(wish.old or {}), self._ranges.families)
        if wrong:
            raise invalid("Service", "", name_of(service), wrong)
        await self._give_ips(wish)
        spec.setdefault("internalTrafficPolicy", "Cluster")
        if needs_node_ports(spec) or needs_health_port(spec):
            await self._give_ports(wish)

    async def _give_ips(self, wish: Wish) -> None:
        """Of each of its families, in their order."""
        spec = wish.spec
        asked = addresses_of(spec)
        if asked[:1] == ["None"]:
            given = ["None"]
        else:
            wishes = [*asked, "", ""]
            given = [
                await self._give_ip(wish, family, wishes[index])
                for index, family in enumerate(spec["ipFamilies"])
            ]
        spec["clusterIP"], spec["clusterIPs"] = given[0], given

    async def _give_ip(self, wish: Wish, family: str, asked: str) -> str:
        if asked in wish.had.ips:
            return asked
        if asked:
            new = self._is_inside(wish, asked)
            if new and (self._held.has_ip(asked) or not await self._take_ip(wish, asked)):
                why = f"failed to allocate IP {asked}: provided IP is already allocated"
                raise wish.refuse(invalid_value("spec.clusterIPs", addresses_of(wish.spec), why))
            return asked
        lost: set[str] = set()
        while True:
            found = self._free_ip(wish, family, lost)
            if await self._take_ip(wish, found):
                return found
            lost.add(found)

    async def _take_ip(self, wish: Wish, ip: str) -> bool:
        if wish.dry_run:
            return True
        with Hold() as claim:
            claim.add(lambda outcome: wish.taken.take(outcome, {ip}, set()))
            return await self._claims.take_address(wish.service, ip, claim)

    def _is_inside(self, wish: Wish, asked: str) -> bool:
        try:
            address = ipaddress.ip_address(asked)
        except ValueError:
            return False  # validation says what is wrong with it
        if not any(address in network for network in self._ranges.networks(family_of(asked))):
            mismatch = "the provided network does not match the current range"
            why = f"failed to allocate IP {asked}: {mismatch}"
            raise wish.refuse(invalid_value("spec.clusterIPs", addresses_of(wish.spec), why))
        return True

    def _free_ip(self, wish: Wish, family: str, lost: Collection[str]) -> str:
        kept = {*lost, *self._ranges.first_addresses}
        for network in self._ranges.networks(family):
            found = self._free_ip_of(network, kept)
            if found:
                return found
        why = "failed to allocate a serviceIP: range is full"
        raise wish.refuse(invalid_value("spec.clusterIPs", [], why))

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
            if address not in kept and not self._held.has_ip(address):
                return address
        return ""

    async def _give_ports(self, wish: Wish) -> None:
        """Those that were asked for, else free ones; all are taken at once."""
        had, used = wish.had.ports, self._held.ports()
        places = port_places(wish.spec)
        asked = {place.asked for place in places if place.asked}
        self._check_ports(wish, places, used - had)
        left = [place for place in places if not place.asked]
        while True:
            chosen = self._free_ports(wish, left, used | asked | had)
            wanted = {*asked, *chosen} - had
            lost = set() if wish.dry_run else await self._take_ports(wanted, wish.taken)
            if not lost:
                break
            self._check_ports(wish, places, lost)
            used |= lost
        for place, port in zip(left, chosen, strict=True):
            place.holder[place.field] = port

    async def _take_ports(self, wanted: set[int], taken: Holdings) -> set[int]:
        """Those that somebody has."""
        if not wanted:
            return set()
        with Hold() as claim:
            claim.add(lambda outcome: taken.take(outcome, set(), wanted))
            return await self._claims.take_ports(wanted, claim)

    def _check_ports(self, wish: Wish, places: list["Place"], used: set[int]) -> None:
        own: set[tuple[str, int]] = set()
        for place in places:
            if place.asked and place.asked not in self._ports:
                valid = f"{self._ports.start}-{self._ports.stop - 1}"
                why = (
                    f"provided port is not in the valid range. The range of valid ports is {valid}"
                )
                raise wish.refuse(invalid_value(place.path, place.asked, why))
            same = (place.holder.get("protocol") or "", place.asked)
            if place.asked in used or (place.asked and same in own):
                why = "provided port is already allocated"
                raise wish.refuse(invalid_value(place.path, place.asked, why))
            own.add(same)

    def _free_ports(self, wish: Wish, places: list["Place"], used: set[int]) -> list[int]:
        free = [port for port in self._ports if port not in used]
        if len(free) < len(places):
            why = "failed to allocate a nodePort: range is full"
            raise wish.refuse(invalid_value(places[0].path, 0, why))
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


def prepare_update(service: Obj, old_service: Obj) -> None:
    """As patchAllocatedValues and dropTypeDependentFields: what an update leaves out it keeps, and
    what the new type has no use for goes, unless the update changed it too."""
    spec, old = service.setdefault("spec", {}), spec_of(old_service)
    _drop_what_the_type_has_not(spec, old)
    if spec.get("type") == "ExternalName":
        return
    if old.get("type") != "ExternalName":
        _keep_addresses(spec, old)
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if old.get(name):
            spec.setdefault(name, old[name])
    if spec.get("type") in NODE_PORT_TYPES and old.get("type") in NODE_PORT_TYPES:
        _keep_node_ports(spec, _node_ports(old))
    if needs_health_port(spec) and needs_health_port(old) and old.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", old["healthCheckNodePort"])


def _keep_addresses(spec: Obj, old: Obj) -> None:
    """clusterIP and clusterIPs go together, also for clients that know the first alone."""
    listed = spec.get("clusterIPs") or []
    if not spec.get("clusterIP") and old.get("clusterIP"):
        spec["clusterIP"] = old["clusterIP"]
    same = spec.get("clusterIP") == old.get("clusterIP")
    if same and not listed and old.get("clusterIPs"):
        spec["clusterIPs"] = old["clusterIPs"]
    elif not same and listed == (old.get("clusterIPs") or []):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _keep_node_ports(spec: Obj, before: dict[tuple[object, object], int | None]) -> None:
    for port in spec.get("ports") or ():
        kept = before.get((port.get("protocol"), port.get("port")))
        if kept and not port.get("nodePort"):
            port["nodePort"] = kept


def _drop_what_the_type_has_not(spec: Obj, old: Obj) -> None:
    if spec.get("type") == "ExternalName" and old.get("type") != "ExternalName":
        _drop_unchanged(spec, old, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        _drop_unchanged(spec, old, "internalTrafficPolicy")
    if old.get("type") in NODE_PORT_TYPES and spec.get("type") not in NODE_PORT_TYPES:
        if _node_ports(spec) == _node_ports(old):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
        _drop_unchanged(spec, old, "externalTrafficPolicy")
    if old.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_unchanged(spec, old, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if needs_health_port(old) and not needs_health_port(spec):
        _drop_unchanged(spec, old, "healthCheckNodePort")


def _drop_unchanged(spec: Obj, old: Obj, *names: str) -> None:
    for name in names:
        if name in spec and spec[name] == old.get(name):
            del spec[name]


def _node_ports(spec: Obj) -> dict[tuple[object, object], int | None]:
    return {
        (port.get("protocol"), port.get("port")): port.get("nodePort")
        for port in spec.get("ports") or ()
    }


def prepare_create(service: Obj) -> None:
    """Raises Invalid: families and addresses that contradict each other, and nothing else then."""
    wrong = validate_families(service)
    if wrong:
        raise invalid("Service", "", name_of(service), wrong)


STRATEGY = Strategy(
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    fields={
        "spec.clusterIP": path_getter("spec", "clusterIP"),
        "spec.type": path_getter("spec", "type"),
    },
    returns_deleted=True,
)


def strategy(allocator: Allocator) -> Strategy:
    """Of services that get addresses and ports."""
    return replace(STRATEGY, allocate=allocator.allocate, removed=allocator.removed)

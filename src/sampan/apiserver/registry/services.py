"""Services: cluster IPs and node ports.

Job: give a service its addresses and ports, and keep them across updates.
Invariant: an address or port is never given to two services: what services have is read from the
    cache, what is being given is remembered until that service is stored or refused.
"""

import ipaddress
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sampan.api.errors import ApiError, FieldError, invalid, invalid_value
from sampan.api.objects import Obj, key_of, name_of
from sampan.apiserver.registry.strategy import Strategy, path_getter

NODE_PORT_TYPES = ("NodePort", "LoadBalancer")


class Allocator:
    def __init__(
        self,
        cidr: str,
        first_port: int,
        last_port: int,
        services: Callable[[], list[Obj]],
        rng: random.Random,
    ) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._ports = range(first_port, last_port + 1)
        self._services = services
        self._rng = rng
        self._giving_ips: set[str] = set()
        self._giving_ports: set[int] = set()

    @property
    def first_address(self) -> str:
        """The `kubernetes` service's own."""
        return str(self._network[1])

    @contextmanager
    def allocated(self, service: Obj) -> Iterator[None]:
        """Fill in what the service needs; it is held for the caller until the block ends."""
        ips: set[str] = set()
        ports: set[int] = set()
        try:
            self._give(service, ips, ports)
            yield
        finally:
            self._giving_ips -= ips
            self._giving_ports -= ports

    def _give(self, service: Obj, ips: set[str], ports: set[int]) -> None:
        spec = service.setdefault("spec", {})
        others = [one for one in self._services() if key_of(one) != key_of(service)]
        if spec.get("type") == "ExternalName":
            return
        self._give_ip(service, spec, others, ips)
        if spec.get("type") in NODE_PORT_TYPES and spec.get("allocateLoadBalancerNodePorts", True):
            self._give_ports(service, spec, others, ports)

    def _give_ip(self, service: Obj, spec: Obj, others: list[Obj], ips: set[str]) -> None:
        asked = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
        used = {(one.get("spec") or {}).get("clusterIP") for one in others} | self._giving_ips
        if asked and asked != "None":
            self._check_ip(service, asked, used)
        elif not asked:
            asked = self._free_ip(service, used)
        spec["clusterIP"], spec["clusterIPs"] = asked, [asked]
        if asked != "None":
            ips.add(asked)
            self._giving_ips.add(asked)
        family = "IPv6" if self._network.version == 6 else "IPv4"
        spec.setdefault("ipFamilies", [family])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")

    def _check_ip(self, service: Obj, asked: str, used: set[str | None]) -> None:
        try:
            inside = ipaddress.ip_address(asked) in self._network
        except ValueError:
            return  # validation says what is wrong with it
        if not inside:
            why = (
                f"failed to allocate IP {asked}: the provided IP is not in the valid range. "
                f"The range of valid IPs is {self._network}"
            )
            raise _invalid(service, invalid_value("spec.clusterIPs", [asked], why))
        if asked in used:
            why = f"failed to allocate IP {asked}: provided IP is already allocated"
            raise _invalid(service, invalid_value("spec.clusterIPs", [asked], why))

    def _free_ip(self, service: Obj, used: set[str | None]) -> str:
        size = self._network.num_addresses
        start = self._rng.randrange(size)
        for step in range(min(size, 1 << 20)):
            offset = (start + step) % size
            # The network's own, the kubernetes service's and the broadcast address are not given.
            if offset in (0, 1, size - 1):
                continue
            address = str(self._network[offset])
            if address not in used:
                return address
        why = "failed to allocate a serviceIP: range is full"
        raise _invalid(service, invalid_value("spec.clusterIPs", [], why))

    def _give_ports(self, service: Obj, spec: Obj, others: list[Obj], ports: set[int]) -> None:
        used = {
            port.get("nodePort")
            for one in others
            for port in (one.get("spec") or {}).get("ports") or ()
        } | self._giving_ports
        for index, port in enumerate(spec.get("ports") or ()):
            asked = port.get("nodePort")
            if asked:
                self._check_port(service, index, asked, used)
            else:
                asked = port["nodePort"] = self._free_port(service, used | ports)
            ports.add(asked)
        self._giving_ports |= ports

    def _check_port(self, service: Obj, index: int, asked: int, used: set[int | None]) -> None:
        field = f"spec.ports[{index}].nodePort"
        if asked not in self._ports:
            valid = f"{self._ports.start}-{self._ports.stop - 1}"
            why = f"provided port is not in the valid range. The range of valid ports is {valid}"
            raise _invalid(service, invalid_value(field, asked, why))
        if asked in used:
            why = "provided port is already allocated"
            raise _invalid(service, invalid_value(field, asked, why))

    def _free_port(self, service: Obj, used: set[int | None]) -> int:
        free = [port for port in self._ports if port not in used]
        if not free:
            why = "failed to allocate a nodePort: range is full"
            raise _invalid(service, invalid_value("spec.ports[0].nodePort", 0, why))
        return self._rng.choice(free)


def prepare_update(service: Obj, old_service: Obj) -> None:
    """As patchAllocatedValues: an update that leaves addresses and ports out keeps them."""
    spec, old = service.setdefault("spec", {}), old_service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return
    if old.get("type") != "ExternalName" and not spec.get("clusterIP"):
        for field in ("clusterIP", "clusterIPs"):
            if old.get(field):
                spec[field] = old[field]
    for field in ("ipFamilies", "ipFamilyPolicy"):
        if old.get(field):
            spec.setdefault(field, old[field])
    if spec.get("type") in NODE_PORT_TYPES and old.get("type") in NODE_PORT_TYPES:
        before = {
            (port.get("protocol"), port.get("port")): port.get("nodePort")
            for port in old.get("ports") or ()
        }
        for port in spec.get("ports") or ():
            kept = before.get((port.get("protocol"), port.get("port")))
            if kept and not port.get("nodePort"):
                port["nodePort"] = kept


def _invalid(service: Obj, cause: FieldError) -> ApiError:
    return invalid("Service", "", name_of(service), [cause])


STRATEGY = Strategy(
    prepare_update=prepare_update,
    fields={
        "spec.clusterIP": path_getter("spec", "clusterIP"),
        "spec.type": path_getter("spec", "type"),
    },
    returns_deleted=True,
)

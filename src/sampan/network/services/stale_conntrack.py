"""Conntrack entries and affinities of a Service's endpoints that are gone.

Job: a Service's elements before and after → which remembered connections and clients no longer
    hold. Pure.
Invariant: what still leads to an endpoint is not stale.
"""

from collections.abc import Iterable

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.elements import Elements, Values

_AFFINITY = ("affinity-ips", "affinity-nodeports")


@dataclass(frozen=True, slots=True)
class StaleEndpoints:
    """`service` as the packets say it: (address, protocol, port), or (protocol, port)."""

    service: Values
    endpoints: frozenset[Values]  # those that it still has


def stale_udp(before: Elements, after: Elements) -> list[StaleEndpoints]:
    """TCP notices by itself; a UDP client would go on sending to where nobody is."""
    old, new = _endpoints(before), _endpoints(after)
    return [
        StaleEndpoints(service, new.get(service, frozenset()))
        for service, endpoints in old.items()
        if service[-2] == "UDP" and endpoints - new.get(service, frozenset())
    ]


def stale_affinity(before: Elements, after: Elements) -> list[StaleEndpoints]:
    """Clients that were sent to an endpoint that is gone, or that need not stay any more."""
    old, new = _endpoints(before), _endpoints(after)
    found = []
    for name, service in before:
        if name in _AFFINITY:
            left = new.get(service, frozenset()) if (name, service) in after else frozenset()
            if (old.get(service, frozenset()) - left) or not left:
                found.append(StaleEndpoints(service, left))
    return found


def stale_clients(
    stale: Iterable[StaleEndpoints], affinities: Iterable[tuple[Values, Values]]
) -> list[Values]:
    """Of those that the kernel remembers: (client, address, protocol, port) → endpoint."""
    by_service = {each.service: each.endpoints for each in stale}
    gone = []
    for key, endpoint in affinities:
        left = by_service.get(key[1:], by_service.get(key[2:]))
        if left is not None and endpoint not in left:
            gone.append(key)
    return gone


def _endpoints(elements: Elements) -> dict[Values, frozenset[Values]]:
    found: dict[Values, set[Values]] = {}
    for (name, service), value in elements.items():
        if "endpoints-" in name and isinstance(value, tuple):
            found.setdefault(service, set()).add(value)
    return {service: frozenset(endpoints) for service, endpoints in found.items()}

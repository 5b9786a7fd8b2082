"""Conntrack entries and affinities of a Service's endpoints that are gone.

Job: a Service's endpoints before and after → which remembered connections and clients no longer
    hold. Pure.
Invariant: what still leads to an endpoint is not stale; of connections, to one that serves, though
    nobody new is sent there any more: as upstream, changes of a Service leave existing flows alone.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.elements import Elements, Values

_AFFINITY = ("affinity-ips", "affinity-nodeports")


@dataclass(frozen=True, slots=True)
class StaleEndpoints:
    """`service` as the packets say it: (address, protocol, port), or (protocol, port)."""

    service: Values
    endpoints: frozenset[Values]  # those that it still has


Served: TypeAlias = Mapping[Values, frozenset[Values]]  # what packets say → who serves there


def stale_udp(before: Served, after: Served) -> list[StaleEndpoints]:
    """TCP notices by itself; a UDP client would go on sending to where nobody is, or has been
    sending since before somebody was there."""
    return [
        StaleEndpoints(service, endpoints)
        for service, endpoints in after.items()
        if service not in before or before[service] - endpoints
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

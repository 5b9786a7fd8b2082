"""From which ranges Services get their addresses: those of the ServiceCIDRs.

Job: the cluster's own ranges and the ServiceCIDR objects → the networks to give from. Pure.
Invariant: nothing is given from a range that is going away, or not ready.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sampan.api.objects import Obj, is_deleted, spec_of
from sampan.api.rules.conditions import condition_of

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_to_give_from(own: Sequence[str], cidrs: Iterable[Obj], family: str) -> list[Network]:
    """`own` (of the server's settings) come first, and count by themselves as long as no
    ServiceCIDR has been made."""
    known = False
    usable: list[str] = []
    for cidr in cidrs:
        known = True
        if is_ready(cidr):
            usable += spec_of(cidr).get("cidrs") or ()
    texts = sorted(set(usable), key=lambda text: text not in own) if known else own
    return [network for network in map(network_of, texts) if f"IPv{network.version}" == family]


def is_ready(cidr: Obj) -> bool:
    """As upstream: one that nobody has judged yet counts."""
    condition = condition_of(cidr, "Ready")
    judged = condition is None or condition.get("status") == "True"
    return judged and not is_deleted(cidr)


@lru_cache(maxsize=64)
def network_of(text: str) -> Network:
    return ipaddress.ip_network(text, strict=False)  # an earlier version took host bits

"""Address allocation: the address of a new pod.

Job: a range, the addresses that are taken, the last one given → the next free one. Pure.
Invariant: never the range's own first address (the tunnel's), the gateway's, nor IPv4's broadcast.
Invariant: an address that was given back is given again last, so that whoever remembers it finds
    nobody for as long as possible.
"""

import ipaddress
from collections.abc import Collection

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressesExhausted(Exception):
    """Every address of the range is taken; the message says which range."""


def gateway_of(network: Network) -> str:
    return str(network[1])


def next_address(network: Network, taken: Collection[str], last: str = "") -> str:
    first, final = 2, network.num_addresses - (2 if network.version == 4 else 1)
    start = first
    if last and ipaddress.ip_address(last) in network:
        start = int(ipaddress.ip_address(last)) - int(network.network_address) + 1
    # So many looks find a free one if there is one: a range of IPv6 is not looked through.
    looks = min(len(taken) + 1, final - first + 1)
    for look in range(looks):
        number = first + (start - first + look) % (final - first + 1)
        address = str(network[number])
        if address not in taken:
            return address
    raise AddressesExhausted(
        f"no IP addresses available in range set: {network[first]}-{network[final]}"
    )

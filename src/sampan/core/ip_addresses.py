"""Allowed addresses: where a server may connect to on a caller's behalf. Pure.

Job: an address in text → whether it is an ordinary one, whatever it is dressed as.
Invariant: an IPv6 address that carries an IPv4 one is judged by what it carries as well.
"""

import ipaddress

# Where clouds answer a machine's questions about itself without asking who it is; those that are
# link-local are refused as such.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_proxyable(text: str) -> bool:
    """As Go's IP.IsGlobalUnicast: private addresses are, loopback and link-local ones are not."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return False
    return _is_ordinary(address) and all(_is_ordinary(inner) for inner in _carried_address(address))


def _is_ordinary(address: Address) -> bool:
    special = address.is_loopback or address.is_link_local or address.is_multicast
    unspecified = address.is_unspecified or (address.version == 4 and int(address) >> 24 == 0)
    broadcast = address.version == 4 and int(address) == 0xFFFFFFFF
    return not (special or unspecified or broadcast or address in _METADATA)


def _carried_address(address: Address) -> list[ipaddress.IPv4Address]:
    """Of IPv4-mapped, IPv4-compatible, NAT64, 6to4 and Teredo addresses."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or address in _COMPATIBLE:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]

"""IP addresses and networks in API fields.

Job: from a text to an address or network, and to what is wrong with a bad one.
Invariant: no function raises. In old fields odd spellings are forgiven as upstream forgives them:
    where StrictIPCIDRValidation is off, and in what an object has had before.
"""

from collections.abc import Container
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from sampan.api import features
from sampan.api.errors import FieldError, invalid_value
from sampan.core.digits import is_digits
from sampan.core.patterns import lazy_pattern

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_ZEROS_FORM = lazy_pattern(r"(?<![0-9A-Fa-f:])0+(?=[0-9])")
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN_IPV4_FORM = lazy_pattern(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_BAD_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address_of(text: str) -> Address | None:
    return _address_of(text) if len(text) <= 64 else None


@lru_cache(maxsize=1024)  # the same few of nodes and pods, with every status
def _address_of(text: str) -> Address | None:
    try:
        return ip_address(_forgiven(text))
    except ValueError:
        return None


def network_of(text: str) -> Network | None:
    """Host bits may be set: 10.0.0.1/8 is 10.0.0.0/8."""
    address, slash, bits = text.partition("/")
    if not slash or not is_digits(bits) or len(bits) > 9:
        return None
    try:
        return ip_network(f"{_forgiven(address)}/{int(bits)}", strict=False)
    except ValueError:
        return None


def family_of(text: str) -> int:
    """4 or 6; 0 where it is no address. Every pod has one of its own, written as it should be."""
    if _PLAIN_IPV4_FORM.fullmatch(text):
        return 4
    found = address_of(text)
    return 0 if found is None else found.version


def validate_address(
    text: str, path: str, errors: list[FieldError], kept: Container[str | None] = ()
) -> bool:
    """Whether it is good. `kept`: those that the object has had."""
    if text in kept or _PLAIN_IPV4_FORM.fullmatch(text):
        return True
    address = address_of(text)
    why = _BAD_ADDRESS if address is None else ""
    if address is not None and features.enabled("StrictIPCIDRValidation"):
        why = _oddity_of_address(text, address)
    if why:
        errors.append(invalid_value(path, text, why))
    return not why


def validate_canonical_address(text: str, path: str, errors: list[FieldError]) -> bool:
    """Of fields that were never forgiving: as upstream's IsValidIP."""
    address = address_of(text)
    why = _BAD_ADDRESS if address is None else _oddity_of_address(text, address)
    if not why and text != str(address):
        why = f'must be in canonical form ("{address}")'
    if why:
        errors.append(invalid_value(path, text, why))
    return not why


def validate_network(
    text: str, path: str, errors: list[FieldError], kept: Container[str] = ()
) -> None:
    """`kept`: those that the object has had."""
    if text in kept:
        return
    if (network := network_of(text)) is None:
        errors.append(invalid_value(path, text, _BAD_NETWORK))
    elif features.enabled("StrictIPCIDRValidation") and (why := _oddity_of(text, network)):
        errors.append(invalid_value(path, text, why))


def validate_canonical_network(text: str, path: str, errors: list[FieldError]) -> None:
    """Of fields that were never forgiving: as upstream's IsValidCIDR."""
    if (network := network_of(text)) is None:
        errors.append(invalid_value(path, text, _BAD_NETWORK))
    elif why := _oddity_of(text, network):
        errors.append(invalid_value(path, text, why))
    elif text != str(network):
        errors.append(invalid_value(path, text, f'must be in canonical form ("{network}")'))


def _oddity_of_address(text: str, address: Address) -> str:
    """Empty where programs agree on what is meant."""
    if _forgiven(text) != text:
        return "must not have leading 0s"
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    return "must not be an IPv4-mapped IPv6 address" if is_mapped else ""


def _oddity_of(text: str, network: Network) -> str:
    """Empty where programs agree on what is meant."""
    address, _, bits = text.partition("/")
    if _forgiven(address) != address or (len(bits) > 1 and bits.startswith("0")):
        return "must not have leading 0s in IP or prefix length"
    written = ip_address(address)
    if isinstance(written, IPv6Address) and written.ipv4_mapped:
        return "must not have an IPv4-mapped IPv6 address"
    if written != network.network_address:
        return "must not have bits set beyond the prefix length"
    return ""


def _forgiven(text: str) -> str:
    if "%" in text:  # Go's parser knows no zones
        return ""
    return _ZEROS_FORM.sub("", text) if "." in text else text

"""Addresses: IP, CIDR and URL.

Job: Kubernetes' libraries of that name.
Invariant: what has a zone, or is IPv4 inside IPv6, is no address, as upstream.
"""

import ipaddress
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from sampan.api.cel.language import cost
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.types import opaque_type
from sampan.api.cel.language.values import CIDR, IP
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass

ADDRESSES = Library("kubernetes.net.ip", types=(IP, CIDR))
URLS = Library("kubernetes.urls", types=(opaque_type("kubernetes.URL"),))
_URL = "kubernetes.URL"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def _address(text: str) -> Address:
    try:
        found = ipaddress.ip_address(text)
    except ValueError as error:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string: '
                              f'ParseAddr("{text}"): unable to parse IP') from error  # fmt: skip
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
        if found.ipv4_mapped is not None:
            raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _network(text: str) -> Network:
    address, slash, length = text.partition("/")
    try:
        if not slash or not is_digits(length) or (length[0] == "0" and length != "0"):
            raise ValueError(text)
        found = ipaddress.ip_interface(text)
    except ValueError as error:
        why = f'netip.ParsePrefix("{text}"): unable to parse'
        raise EvaluationError(
            f"network address parse error during conversion from string: {why}"
        ) from error
    _address(address)
    return found


@ADDRESSES.function("ip", "string", to="net.IP", cost=cost.first_read)
def _ip(text: str) -> Address:
    return _address(text)


@ADDRESSES.function("isIP", "string", to="bool", cost=cost.first_read)
def _is_ip(text: str) -> bool:
    return _is_fine(_address, text)


@ADDRESSES.function("ip.isCanonical", "string", to="bool", cost=cost.first_read_twice)
def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


@ADDRESSES.function("cidr", "string", to="net.CIDR", cost=cost.first_read)
def _cidr(text: str) -> Network:
    return _network(text)


@ADDRESSES.function("isCIDR", "string", to="bool", cost=cost.first_read)
def _is_cidr(text: str) -> bool:
    return _is_fine(_network, text)


def _is_fine(parse: object, text: str) -> bool:
    assert callable(parse)
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


@ADDRESSES.function("string", "net.IP", to="string")
@ADDRESSES.function("string", "net.CIDR", to="string")
def _text(value: Address | Network) -> str:
    return str(value)


@ADDRESSES.member("net.IP", "family", to="int")
@ADDRESSES.member("net.CIDR", "family", to="int")
def _family(value: Address | Network) -> int:
    return value.version


@ADDRESSES.member("net.IP", "isUnspecified", to="bool")
def _is_unspecified(value: Address) -> bool:
    return value.is_unspecified


@ADDRESSES.member("net.IP", "isLoopback", to="bool")
def _is_loopback(value: Address) -> bool:
    return value.is_loopback


@ADDRESSES.member("net.IP", "isLinkLocalMulticast", to="bool")
def _is_local_multicast(value: Address) -> bool:
    scope = "224.0.0.0/24" if value.version == 4 else "ff02::/16"
    return value in ipaddress.ip_network(scope)


@ADDRESSES.member("net.IP", "isLinkLocalUnicast", to="bool")
def _is_local_unicast(value: Address) -> bool:
    return value.is_link_local


@ADDRESSES.member("net.IP", "isGlobalUnicast", to="bool")
def _is_global_unicast(value: Address) -> bool:
    return not (
        value.is_unspecified
        or value.is_loopback
        or value.is_multicast
        or value.is_link_local
        or value == ipaddress.IPv4Address("255.255.255.255")
    )


@ADDRESSES.member("net.CIDR", "ip", to="net.IP")
def _ip_of(value: Network) -> Address:
    return value.ip


@ADDRESSES.member("net.CIDR", "prefixLength", to="int")
def _prefix_length(value: Network) -> int:
    return value.network.prefixlen


@ADDRESSES.member("net.CIDR", "masked", to="net.CIDR")
def _network_of(value: Network) -> Network:
    return ipaddress.ip_interface(str(value.network))


@ADDRESSES.member("net.CIDR", "containsIP", "net.IP", to="bool", cost=2)
def _contains_ip(value: Network, other: Address) -> bool:
    return other in value.network


@ADDRESSES.member("net.CIDR", "containsIP", "string", to="bool", cost=cost.second_read)
def _contains_ip_text(value: Network, other: str) -> bool:
    return _address(other) in value.network


@ADDRESSES.member("net.CIDR", "containsCIDR", "net.CIDR", to="bool", cost=3)
def _contains_cidr(value: Network, other: Network) -> bool:
    if value.version != other.version:
        return False
    return other.network.subnet_of(value.network)  # type: ignore[arg-type]  # of one version now


@ADDRESSES.member("net.CIDR", "containsCIDR", "string", to="bool", cost=cost.second_read)
def _contains_cidr_text(value: Network, other: str) -> bool:
    return _contains_cidr(value, _network(other))


@dataclass(frozen=True, slots=True)
class Url:
    cel_type = opaque_type(_URL)
    parts: SplitResult


def _parsed_url(text: str) -> Url:
    trouble = EvaluationError(
        f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
    )
    if any(item <= " " or item == "\x7f" for item in text):
        raise trouble
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise trouble from error
    if not text.startswith("/") and not (parts.scheme and (parts.netloc or parts.path)):
        raise trouble  # neither absolute nor a path
    return Url(parts)


@URLS.function("url", "string", to=_URL, cost=cost.first_read)
def _url(text: str) -> Url:
    return _parsed_url(text)


@URLS.function("isURL", "string", to="bool", cost=cost.first_read)
def is_url(text: str) -> bool:
    return _is_fine(_parsed_url, text)


@URLS.member(_URL, "getScheme", to="string")
def _scheme(value: Url) -> str:
    return value.parts.scheme


@URLS.member(_URL, "getHost", to="string")
def _host(value: Url) -> str:
    return value.parts.netloc.rpartition("@")[2]


@URLS.member(_URL, "getHostname", to="string")
def _hostname(value: Url) -> str:
    host = _host(value)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


@URLS.member(_URL, "getPort", to="string")
def _port(value: Url) -> str:
    host = _host(value)
    after = host.rpartition("]")[2] if host.startswith("[") else host
    return after.partition(":")[2]


@URLS.member(_URL, "getEscapedPath", to="string")
def _escaped_path(value: Url) -> str:
    path = value.parts.path
    return quote(unquote(path), safe="/$&+,:;=@!'()*~") if "%" not in path else path


@URLS.member(_URL, "getQuery", to="map(string, list(string))")
def _query(value: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, item in parse_qsl(value.parts.query, keep_blank_values=True):
        found.setdefault(key, []).append(item)
    return found

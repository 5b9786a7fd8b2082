"""What flags hold: one word of the command line → a value, or what is wrong with it.

Job: the types that the flags of several verbs share. Pure.
"""

import argparse
import ipaddress

from sampan.core.digits import is_digits

FAMILIES = ("ipv4", "ipv6")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node_name(text: str) -> str:
    from sampan.api.rules.names import dns_subdomain

    complaints = dns_subdomain(text) if text else ()
    if complaints:
        raise argparse.ArgumentTypeError(f"{text!r} is no node's name: {complaints[0]}")
    return text


def names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def port(text: str) -> int:
    if not is_digits(text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def two_ports(text: str) -> tuple[int, int]:
    first, comma, second = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"{text!r} is not PORT,PORT")
    return port(first), port(second)


def count(text: str) -> int:
    if not is_digits(text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes (1 or more)")
    return int(text)


def truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


def header(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY:VALUE")
    return key.strip(), value.strip()


def labels(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not key or not equals for key, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE,…")
    return {key: value for key, _, value in pairs}


def taints(text: str) -> list[dict[str, str]]:
    taints = []
    for part in text.split(","):
        told, colon, effect = part.rpartition(":")
        key, _, value = told.partition("=")
        if not colon or not key or effect not in TAINT_EFFECTS:
            raise argparse.ArgumentTypeError(f"{part!r} is not KEY=VALUE:EFFECT")
        taints.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return taints


def port_range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not dash or not 0 < port(first) <= port(last):
        raise argparse.ArgumentTypeError(f"{text!r} is not FIRST-LAST")
    return port(first), port(last)


def stub_domain(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """DOMAIN=SERVER[:PORT],… with IPv6 in brackets where a port follows."""
    domain, equals, servers = text.partition("=")
    found = tuple(_name_server(each) for each in names(servers))
    if not equals or not domain.strip(".") or not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not DOMAIN=ADDRESS[:PORT],…")
    return domain.strip(".").lower(), found


def _name_server(text: str) -> tuple[str, int]:
    has_port = text.count(":") == 1 or (text.startswith("[") and not text.endswith("]"))
    return socket_address(text if has_port else f"{text}:53")


def socket_address(text: str) -> tuple[str, int]:
    """ADDRESS:PORT, with IPv6 in brackets."""
    address, _, number = text.rpartition(":")
    try:
        return str(ipaddress.ip_address(address.strip("[]"))), port(number)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS:PORT: {error}") from error


def networks(text: str) -> tuple[str, ...]:
    """One range, or one of each family."""
    try:
        found = [ipaddress.ip_network(each) for each in names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of addresses: {error}") from error
    if not 0 < len(found) <= len(FAMILIES):
        raise argparse.ArgumentTypeError("must not contain more than two entries")
    if len({each.version for each in found}) < len(found):
        raise argparse.ArgumentTypeError(f"[0] and [1] must be of different IP family: {text}")
    return tuple(str(each) for each in found)


def families(text: str) -> tuple[str, ...]:
    """`ipv4`, `ipv6`, or both, the main one first."""
    found = tuple(each.lower() for each in names(text))
    if not found or len(set(found)) < len(found) or not set(found) <= set(FAMILIES):
        raise argparse.ArgumentTypeError(f"{text!r} is not ipv4, ipv6, ipv4,ipv6 or ipv6,ipv4")
    return found


def addresses(text: str) -> tuple[str, ...]:
    """One address, or one of each family."""
    try:
        found = [ipaddress.ip_address(each) for each in names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no address: {error}") from error
    if len({each.version for each in found}) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} has two addresses of one family")
    return tuple(str(each) for each in found)


def mirror(text: str) -> tuple[str, str]:
    """`docker.io=https://mirror.example`."""
    registry, equals, url = text.partition("=")
    if not equals or not registry or "/" in registry or not url.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r} is not REGISTRY=https://…")
    return registry, url

"""Names in certificates, and whether they mean a host, by Go's rules.

Job: a host and the names of a certificate → do they match, else why not; what a CA may sign for.
    Pure.
Invariant: the common name counts for nothing: only alternative names do.
"""

import ipaddress
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from cryptography import x509

from sampan.core.fast_dataclass import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_MOST_NAMES = 100  # that a message lists
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_FIRST_LETTERS = _LETTERS - {"-"}


class NotPermitted(Exception):
    """A CA may not sign for a name; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class Names:
    """The alternative names of a certificate."""

    dns: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    given: bool = False  # there is the extension, whatever it holds


def names_of(certificate: x509.Certificate) -> Names:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Names()
    addresses = found.get_values_for_type(x509.IPAddress)
    return Names(
        tuple(found.get_values_for_type(x509.DNSName)),
        tuple(one for one in addresses if isinstance(one, Address)),
        tuple(found.get_values_for_type(x509.RFC822Name)),
        tuple(found.get_values_for_type(x509.UniformResourceIdentifier)),
        given=True,
    )


def mismatch(names: Names, common_name: str, host: str) -> str:
    """Why a certificate is not this host's; empty where it is."""
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    address = _address(bare)
    if address is not None:
        return "" if address in map(_plain, names.addresses) else _other_address(names, bare)
    wanted = host.lower()
    is_plain = _is_host(wanted, is_pattern=False)
    for name in names.dns:
        if is_plain and _is_host(name, is_pattern=True):
            if _matches(name, wanted):
                return ""
        elif name.lower() == wanted and wanted and wanted != ".":
            return ""
    if not names.given and _matches(common_name, host):
        return "x509: certificate relies on legacy Common Name field, use SANs instead"
    if len(names.dns) >= _MOST_NAMES:
        return f"x509: certificate is valid for {len(names.dns)} names, but none matched {host}"
    if not names.dns:
        return f"x509: certificate is not valid for any names, but wanted to match {host}"
    return f"x509: certificate is valid for {', '.join(names.dns)}, not {host}"


def _other_address(names: Names, host: str) -> str:
    found = names.addresses
    if not found:
        return (
            f"x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
        )
    if len(found) >= _MOST_NAMES:
        return f"x509: certificate is valid for {len(found)} IP SANs, but none matched {host}"
    return f"x509: certificate is valid for {', '.join(map(str, found))}, not {host}"


def _address(text: str) -> Address | None:
    try:
        return _plain(ipaddress.ip_address(text)) if "%" not in text else None
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """An IPv4 address in IPv6's form is the same address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_host(host: str, is_pattern: bool) -> bool:
    if not is_pattern:
        host = host.removesuffix(".")
    if not host or host == "*":
        return False
    parts = host.split(".")
    if is_pattern and parts[0] == "*":
        parts = parts[1:]
    return all(part and part[0] in _FIRST_LETTERS and _LETTERS.issuperset(part) for part in parts)


def _matches(pattern: str, host: str) -> bool:
    pattern, host = pattern.lower(), host.lower().removesuffix(".")
    if not pattern or not host:
        return False
    wanted, found = pattern.split("."), host.split(".")
    if len(wanted) != len(found):
        return False
    return all(
        one == two or (at == 0 and one == "*")
        for at, (one, two) in enumerate(zip(wanted, found, strict=True))
    )


# --- name constraints

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Match = Callable[[str, str, bool], bool]  # (name, constraint, is it excluded?)


def check_permitted(constraints: x509.NameConstraints, names: Names) -> None:
    """Raises NotPermitted."""
    permitted, excluded = constraints.permitted_subtrees or (), constraints.excluded_subtrees or ()

    def check(kind: type[x509.GeneralName], word: str, found: Sequence[str], match: _Match) -> None:
        allowed = [str(one.value) for one in permitted if isinstance(one, kind)]
        denied = [str(one.value) for one in excluded if isinstance(one, kind)]
        for name in found:
            _check_name(word, name, allowed, denied, match)

    check(x509.RFC822Name, "email address", names.emails, _email_matches)
    check(x509.DNSName, "DNS name", names.dns, _domain_matches)
    check(x509.UniformResourceIdentifier, "URI", names.uris, _uri_matches)
    addresses = [str(address) for address in names.addresses]
    check(x509.IPAddress, "IP address", addresses, _address_matches)


def _check_name(word: str, name: str, allowed: list[str], denied: list[str], match: _Match) -> None:
    for constraint in denied:
        if match(name, constraint, True):
            raise NotPermitted(f'{word} "{name}" is excluded by constraint "{constraint}"')
    if allowed and not any(match(name, constraint, False) for constraint in allowed):
        raise NotPermitted(f'{word} "{name}" is not permitted by any constraint')


def _domain_matches(domain: str, constraint: str, excluded: bool) -> bool:
    if not constraint:
        return True
    below = constraint.startswith(".")
    wanted, found = _labels(constraint.removeprefix(".")), _labels(domain)
    if len(found) < len(wanted) or (below and len(found) == len(wanted)):
        return False
    if excluded and domain.startswith("*") and len(found) > 1 and wanted:
        found, wanted = found[:-1], wanted[:-1]  # what the star may stand for
    return found[: len(wanted)] == wanted


def _labels(domain: str) -> list[str]:
    """From the last one. Raises NotPermitted."""
    labels = domain.lower().split(".")[::-1]
    if not all(label and all("!" <= letter <= "~" for letter in label) for label in labels):
        raise NotPermitted(f'x509: internal error: cannot parse domain "{domain}"')
    return labels


def _email_matches(email: str, constraint: str, excluded: bool) -> bool:
    local, _, domain = email.rpartition("@")
    if "@" in constraint:
        wanted, _, of_domain = constraint.rpartition("@")
        return local == wanted and domain.lower() == of_domain.lower()
    return _domain_matches(domain, constraint, excluded)


def _uri_matches(uri: str, constraint: str, excluded: bool) -> bool:
    host = urlsplit(uri).hostname or ""
    if not host:
        raise NotPermitted(f'URI with empty host ("{uri}") cannot be matched against constraints')
    if _address(host) is not None:
        raise NotPermitted(f'URI with IP ("{uri}") cannot be matched against constraints')
    return _domain_matches(host, constraint, excluded)


def _address_matches(address: str, constraint: str, _excluded: bool) -> bool:
    found, network = ipaddress.ip_address(address), ipaddress.ip_network(constraint, strict=False)
    return found.version == network.version and found in network

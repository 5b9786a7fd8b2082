"""Warnings that several kinds share: labels of nodes that have new names, odd spellings, fractions.

Job: one rule per function, from a value and its path to sentences. Pure.
"""

import ipaddress
from collections.abc import Iterator

from sampan.api import features, quantity
from sampan.api.objects import Obj
from sampan.api.rules import names

_NODE_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}
_IN_POD_NAMES = "this is used in Pod names and hostnames, which can result in surprising behavior"
_IN_HOSTNAME = "this is used in the Pod's hostname, which can result in surprising behavior"


def old_label(key: str) -> str:
    """Since when a label of nodes has another name; empty where it has none."""
    since, new = _NODE_LABELS.get(key, ("", ""))
    return f'deprecated since {since}; use "{new}" instead' if new else ""


def node_term(term: Obj, path: str) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        told = old_label(expression.get("key") or "")
        if told:
            yield f"{here}.key: {expression['key']} is {told}"
        for number, value in enumerate(expression.get("values") or ()):
            for wrong in names.label_value(value):
                yield f"{here}.values[{number}]: {wrong}"


def old_annotation(obj: Obj, path: str, key: str, told: str) -> Iterator[str]:
    if key in ((obj.get("metadata") or {}).get("annotations") or {}):
        yield f"{path}metadata.annotations[{key}]: {told}"


def name_in_pods(name: str, *, hostname: bool = False) -> Iterator[str]:
    wrong = names.dns_label(name)
    if wrong:
        why = _IN_HOSTNAME if hostname else _IN_POD_NAMES
        yield f"metadata.name: {why}; a DNS label is recommended: [{' '.join(wrong)}]"


def fraction(amounts: Obj | None, name: str, path: str) -> Iterator[str]:
    """Bytes that are no whole number."""
    written = (amounts or {}).get(name)
    if written is None:
        return
    try:
        amount = quantity.value_of(written)
    except quantity.QuantityError:
        return
    if amount.nanos % quantity.NANO:
        yield (f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer')


def odd_address(text: str, path: str) -> Iterator[str]:
    """An address that is not in its one spelling."""
    try:
        plain = ipaddress.ip_address(_without_zeros(text))
    except ValueError:
        return
    mapped = getattr(plain, "ipv4_mapped", None)
    if mapped is not None or _without_zeros(text) != text:
        yield f'{path}: non-standard IP address "{text}" {_verdict()}: use "{mapped or plain}"'
    elif str(plain) != text:
        yield f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{plain}")'


def odd_network(text: str, path: str) -> Iterator[str]:
    """A network that is not in its one spelling, or may be meant as an address."""
    address, _, bits = text.partition("/")
    try:
        written = ipaddress.ip_interface(f"{_without_zeros(address)}/{bits}")
    except ValueError:
        return
    network, bare = written.network, ipaddress.ip_network(written.ip)
    is_ambiguous = written.ip != network.network_address
    if is_ambiguous:
        choice = f'(should be "{network}" or "{bare}"?)'
        yield f'{path}: CIDR value "{text}" is ambiguous in this context {choice}'
    if _without_zeros(address) != address or bits != str(network.prefixlen):
        yield f'{path}: non-standard CIDR value "{text}" {_verdict()}: use "{network}"'
    elif not is_ambiguous and str(network) != text:
        form = f'should be in RFC 5952 canonical format ("{network}")'
        yield f'{path}: IPv6 CIDR value "{text}" {form}'


def _verdict() -> str:
    if features.changed("OddAddressWords"):
        return "is invalid"
    return "will be considered invalid in a future Kubernetes release"


def _without_zeros(text: str) -> str:
    if ":" in text:
        return text
    parts = text.split(".")
    return ".".join(part.lstrip("0") or "0" for part in parts) if len(parts) == 4 else text

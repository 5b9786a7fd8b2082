"""Network policies: peers, ports, address blocks.

Job: what must hold of a NetworkPolicy.
Invariant: a peer is a block of addresses or a selection of pods, not both.
"""

from collections.abc import Container, Iterator

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_port
from sampan.api.validation.network.addresses import network_of, validate_network
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_label_selector

Errors = list[FieldError]
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def validate_network_policy(policy: Obj, errors: Errors, kept: Container[str] = ()) -> None:
    """`kept`: networks that it has had."""
    spec = spec_of(policy)
    validate_label_selector(spec.get("podSelector"), "spec.podSelector", errors)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                _validate_port(port, f"{path}.ports[{number}]", errors)
            for number, peer in enumerate(rule.get(peers) or ()):
                _validate_peer(peer, f"{path}.{peers}[{number}]", errors, kept)
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        why = "may not specify more than two policyTypes"
        errors.append(invalid_value("spec.policyTypes", types, why))
        return
    for index, kind in enumerate(types):
        if kind not in ("Egress", "Ingress"):
            errors.append(not_supported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress")))


def validate_network_policy_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_network_policy(new, errors, set(_networks_in(spec_of(old))))


def _networks_in(spec: Obj) -> Iterator[str]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.get(direction) or ():
            for peer in rule.get(peers) or ():
                block = peer.get("ipBlock") or {}
                yield from (block.get("cidr") or "", *(block.get("except") or ()))


def _validate_port(port: Obj, path: str, errors: Errors) -> None:
    protocol = port.get("protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    number, end = port.get("port"), port.get("endPort")
    if number is not None:
        validate_port(number, f"{path}.port", errors)
    if end is None:
        return
    if number is None:
        why = "may not be specified when `port` is not specified"
        errors.append(invalid_value(f"{path}.endPort", end, why))
    elif isinstance(number, str):
        why = "may not be specified when `port` is non-numeric"
        errors.append(invalid_value(f"{path}.endPort", end, why))
    else:
        if end < number:
            why = "must be greater than or equal to `port`"
            shown = end if features.changed("EndPortIsShown") else number
            errors.append(invalid_value(f"{path}.endPort", shown, why))
        validate_port(end, f"{path}.endPort", errors)


def _validate_peer(peer: Obj, path: str, errors: Errors, kept: Container[str]) -> None:
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        validate_label_selector(peer[key], f"{path}.{key}", errors)
    block = peer.get("ipBlock")
    if block is None:
        if not selectors:
            errors.append(required_value(path, "must specify a peer"))
        return
    if selectors:
        why = "may not specify both ipBlock and another peer"
        errors.append(field_forbidden(path, why))
    _validate_block(block, f"{path}.ipBlock", errors, kept)


def _validate_block(block: Obj, path: str, errors: Errors, kept: Container[str]) -> None:
    text = block.get("cidr") or ""
    if not text:
        errors.append(required_value(f"{path}.cidr"))
        return
    validate_network(text, f"{path}.cidr", errors, kept)
    network = network_of(text)
    for index, exception in enumerate(block.get("except") or ()):
        here = f"{path}.except[{index}]"
        validate_network(exception, here, errors, kept)
        part = network_of(exception)
        if network is None or part is None:
            continue
        if part.version != network.version or part == network or not _inside(part, network):
            errors.append(invalid_value(here, exception, "must be a strict subset of `cidr`"))


def _inside(part: object, whole: object) -> bool:
    inside: bool = part.subnet_of(whole)  # type: ignore[attr-defined]  # of one family: checked
    return inside


RULES = Rules(names.dns_subdomain, validate_network_policy, validate_network_policy_update)

"""Nodes: taints, pod networks, amounts; and what a node keeps for life.

Job: what must hold of a Node.
Invariant: pod networks and the provider's id are set once.
"""

import re

from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.go_quoting import quoted
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.network.addresses import network_of, validate_network
from sampan.api.validation.pod_spec.resources import validate_amount
from sampan.api.validation.pod_spec.scheduling import EFFECTS
from sampan.api.validation.rules import Rules
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_LONGEST_FEATURE = 253
_FEATURE = lazy_pattern(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII)
_FEATURE_FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters "
    "and slashes"
)
_NOT_DUAL = "invalid PodCIDRs. failed to check with dual stack with error"


def validate_node(node: Obj, errors: Errors) -> None:
    spec = spec_of(node)
    if spec.get("taints"):
        _validate_taints(spec["taints"], "metadata.taints", errors)
    networks = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
    if networks:
        _validate_networks(networks, "spec.podCIDRs", errors)
    _validate_amounts(node, errors)
    _validate_swap(node, errors)
    _validate_features(node, errors)


def validate_node_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_node(new, errors)
    _validate_addresses(new, errors)
    spec, was = spec_of(new), spec_of(old)
    for key, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if was.get(key) and spec.get(key) != was[key]:
            why = f'node updates may not change {shown} except from "" to valid'
            errors.append(field_forbidden(f"spec.{key}", why))


def validate_node_status(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_amounts(new, errors)
    _validate_swap(new, errors)
    _validate_features(new, errors)
    _validate_addresses(new, errors)


def _validate_addresses(new: Obj, errors: Errors) -> None:
    seen: list[Obj] = []
    for index, address in enumerate(status_of(new).get("addresses") or ()):
        if address in seen:
            shown = internal_form("NodeAddress", address)
            errors.append(duplicate(f"status.addresses[{index}]", shown))
        seen.append(address)


def _validate_features(node: Obj, errors: Errors) -> None:
    """What a node declares: names in their order, each once."""
    declared: list[str] = status_of(node).get("declaredFeatures") or []
    for index, name in enumerate(declared):
        path, before = f"status.declaredFeatures[{index}]", declared[index - 1] if index else ""
        if index and name == before:
            errors.append(duplicate(path, name))
        elif index and name < before:
            errors.append(invalid_value(path, name, "list must be sorted alphabetically"))
        if len(name) > _LONGEST_FEATURE:
            why = f"invalid feature name {quoted(name)}: must be no more than {_LONGEST_FEATURE}"
            errors.append(invalid_value(path, name, f"{why} characters"))
        elif not _FEATURE.fullmatch(name):
            why = f"invalid feature name {quoted(name)}: {_FEATURE_FORM}"
            errors.append(invalid_value(path, name, why))


def _validate_swap(node: Obj, errors: Errors) -> None:
    swap = (status_of(node).get("nodeInfo") or {}).get("swap") or {}
    if swap.get("capacity") is not None and swap["capacity"] <= 0:
        where, why = "metadata.nodeSwapStatus.capacity", "must be greater than zero"
        errors.append(invalid_value(where, swap["capacity"], why))


def _validate_taints(taints: list[Obj], path: str, errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = (taint.get(item) or "" for item in ("key", "value", "effect"))
        validate_with(names.label_key, key, f"{here}.key", errors)
        wrong = names.label_value(value)
        if wrong:
            errors.append(invalid_value(f"{here}.value", value, ";".join(wrong)))
        if not effect:
            errors.append(required_value(f"{here}.effect"))
        elif effect not in EFFECTS:
            errors.append(not_supported(f"{here}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            twice = duplicate(here, internal_form("Taint", taint))
            why = f"{twice.message}: taints must be unique by key and effect pair"
            errors.append(FieldError(twice.reason, here, why))
        seen.add((key, effect))


def _validate_networks(networks: list[str], path: str, errors: Errors) -> None:
    for index, network in enumerate(networks):
        validate_network(network, f"{path}[{index}]", errors)
    families = [found.version for item in networks if (found := network_of(item))]
    unread = [index for index, item in enumerate(networks) if network_of(item) is None]
    if unread and len(networks) > 1:
        why = f"invalid CIDR[{unread[0]}]: <nil> (invalid CIDR address: {networks[unread[0]]})"
        told = f"Internal error: {_NOT_DUAL}:{why}"
        errors.append(FieldError("InternalError", path, told))
    if len(networks) > 2 or (len(networks) > 1 and len(set(families)) < 2):
        why = "may specify no more than one CIDR for each IP family"
        errors.append(invalid_value(path, networks, why))


def _validate_amounts(node: Obj, errors: Errors) -> None:
    for kind in ("capacity", "allocatable"):
        for name, amount in (status_of(node).get(kind) or {}).items():
            validate_amount(name, amount, f"status.{kind}.{name}", errors)


RULES = Rules(names.dns_subdomain, validate_node, validate_node_update, validate_node_status)

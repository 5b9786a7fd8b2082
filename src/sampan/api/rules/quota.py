"""What an object takes of its namespace's quota, and which quotas it counts for.

Job: one measure for admission, which refuses, and for the controller, which counts. Pure.
Invariant: a quota with scopes counts pods only (and claims, by their attributes class).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.api.quantity import Quantity, value_of
from sampan.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCES,
    SERVICES,
    Resource,
)
from sampan.api.rules import pod_resources
from sampan.api.rules.pod_resources import Amounts
from sampan.api.rules.qos import qos_class
from sampan.api.rules.storage import class_name_of

_ONE = quantity.from_value(1)
_OF_CLASS = ".storageclass.storage.k8s.io/"
_DEVICES_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32  # of one claim: what a request for all of them counts for
# Kinds that have a name of their own in quotas, beside count/<resource>.<group>.
_NAMED = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
# By plural and group, as it is stored: a quota may name thousands of kinds.
_STORED = {
    (resource.plural, resource.group): resource
    for resource in reversed(RESOURCES)
    if resource.stored_in == ("", "")
}
COUNTED = {  # what a quota calls the number of each
    f"count/{resource.group_resource}": resource for resource in _STORED.values()
}


def usage_of(resource: Resource, obj: Obj) -> Amounts:
    """By the names that quotas use."""
    if resource == PODS:
        return pod_resources.quota_usage(obj)
    usage: Amounts = {f"count/{resource.group_resource}": _ONE}
    if resource == SERVICES:
        usage |= _service_usage(obj)
    elif resource == PERSISTENT_VOLUME_CLAIMS:
        usage |= _claim_usage(obj)
    elif resource == RESOURCE_CLAIMS:
        usage |= _device_usage(obj)
    elif not resource.group and resource.plural in _NAMED:
        usage[resource.plural] = _ONE
    return usage


class Traits(NamedTuple):
    """What of an object scopes ask for."""

    has_deadline: bool = False
    is_best_effort: bool = False
    crosses_namespaces: bool = False
    class_name: str = ""  # of a pod's priority, of a claim's attributes


class Taking(NamedTuple):
    """What an object takes, and by what a scope chooses it: all that a quota sees of it."""

    usage: tuple[tuple[str, Quantity], ...]
    traits: Traits


def taking_of(resource: Resource, obj: Obj) -> Taking:
    return Taking(tuple(usage_of(resource, obj).items()), _traits_of(resource, obj))


def total_of(quota: Obj, resource: Resource, takings: Mapping[Taking, int]) -> Amounts:
    """What the quota counts of so many objects of a kind, by those of its names that they have."""
    scopes, hard = _scopes(quota), (quota.get("spec") or {}).get("hard") or {}
    found: Amounts = {}
    for taking, count in takings.items():
        if not scopes or _is_chosen(scopes, resource, taking.traits):
            for name, amount in taking.usage:
                if name in hard:
                    whole = Quantity(count * amount.nanos, amount.format)
                    found[name] = found[name] + whole if name in found else whole
    return found


def counts(quota: Obj, resource: Resource, obj: Obj) -> bool:
    """Does the quota's scope take this object in?"""
    scopes = _scopes(quota)
    return not scopes or _is_chosen(scopes, resource, _traits_of(resource, obj))


def counted_resource(name: str) -> tuple[str, str] | None:
    """`count/deployments.apps` → (plural, group); None where the name counts no kind."""
    if not name.startswith("count/"):
        return None
    plural, _, group = name.removeprefix("count/").partition(".")
    return plural, group


def is_measured_by(name: str, resource: Resource) -> bool:
    """Do objects of this kind say how much is used of what a quota calls `name`?"""
    found = measured_resource(name)
    return (found.plural, found.group) == (resource.plural, resource.group)


def measured_resource(name: str) -> Resource:
    """The kind whose objects say how much is used of what a quota calls `name`."""
    counted = (name, "") if name in _NAMED else counted_resource(name)
    if counted is not None:
        # Else a kind that somebody has defined.
        return _STORED.get(counted) or Resource(counted[1], "v1", "", counted[0])
    if name == "services" or name.startswith("services."):
        return SERVICES
    if name in ("persistentvolumeclaims", "requests.storage") or _OF_CLASS in name:
        return PERSISTENT_VOLUME_CLAIMS
    return RESOURCE_CLAIMS if name.endswith(_DEVICES_OF_CLASS) else PODS


def _service_usage(service: Obj) -> Amounts:
    spec = service.get("spec") or {}
    ports = spec.get("ports") or []
    usage = {"services": _ONE}
    node_ports = 0
    if spec.get("type") == "NodePort":
        node_ports = len(ports)
    elif spec.get("type") == "LoadBalancer":
        usage["services.loadbalancers"] = _ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
        else:
            node_ports = len(ports)
    if node_ports:
        usage["services.nodeports"] = quantity.from_value(node_ports)
    return usage


def _claim_usage(claim: Obj) -> Amounts:
    usage = {"persistentvolumeclaims": _ONE}
    named = class_name_of(claim)
    if named:
        usage[f"{named}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    written = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get(
        "storage"
    )
    if written is not None:
        usage["requests.storage"] = value_of(written)
        if named:
            usage[f"{named}{_OF_CLASS}requests.storage"] = value_of(written)
    return usage


def _device_usage(claim: Obj) -> Amounts:
    """By device class. Of alternatives, each class by the one that asks for most of it."""
    counts: dict[str, int] = {}
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        alternatives = request.get("firstAvailable") or [request.get("exactly") or {}]
        most: dict[str, int] = {}
        for item in alternatives:
            named = item.get("deviceClassName")
            if named:
                most[named] = max(most.get(named, 0), _devices_of(item))
        for named, count in most.items():
            counts[named] = counts.get(named, 0) + count
    return {
        f"{named}{_DEVICES_OF_CLASS}": quantity.from_value(count) for named, count in counts.items()
    }


def _devices_of(request: Obj) -> int:
    if request.get("allocationMode") == "All":
        return _MOST_DEVICES
    return int(request.get("count") or 0)


_Scope = tuple[str, str, tuple[str, ...]]  # name, operator, values


def _scopes(quota: Obj) -> list[_Scope]:
    spec = quota.get("spec") or {}
    plain: list[_Scope] = [(scope, "Exists", ()) for scope in spec.get("scopes") or ()]
    chosen = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return plain + [
        (item.get("scopeName", ""), item.get("operator", ""), tuple(item.get("values") or ()))
        for item in chosen
    ]


def _traits_of(resource: Resource, obj: Obj) -> Traits:
    spec = obj.get("spec") or {}
    if resource == PODS:
        return Traits(
            has_deadline=spec.get("activeDeadlineSeconds") is not None,
            is_best_effort=qos_class(obj) == "BestEffort",
            crosses_namespaces=_crosses_namespaces(spec.get("affinity") or {}),
            class_name=spec.get("priorityClassName") or "",
        )
    if resource == PERSISTENT_VOLUME_CLAIMS:
        return Traits(class_name=spec.get("volumeAttributesClassName") or "")
    return Traits()


def _is_chosen(scopes: Iterable[_Scope], resource: Resource, traits: Traits) -> bool:
    if resource == PODS:
        return all(_pod_matches(traits, *item) for item in scopes)
    if resource == PERSISTENT_VOLUME_CLAIMS:
        return all(
            scope == "VolumeAttributesClass" and _selects(operator, values, traits.class_name)
            for scope, operator, values in scopes
        )
    return False


def _pod_matches(traits: Traits, scope: str, operator: str, values: tuple[str, ...]) -> bool:
    match scope:
        case "Terminating":
            return traits.has_deadline
        case "NotTerminating":
            return not traits.has_deadline
        case "BestEffort":
            return traits.is_best_effort
        case "NotBestEffort":
            return not traits.is_best_effort
        case "PriorityClass":
            return _selects(operator, values, traits.class_name)
        case "CrossNamespacePodAffinity":
            return traits.crosses_namespaces
    return False


def _selects(operator: str, values: tuple[str, ...], named: str) -> bool:
    match operator:
        case "In":
            return named in values
        case "NotIn":
            return named not in values
        case "DoesNotExist":
            return not named
    return bool(named)


def _crosses_namespaces(affinity: Obj) -> bool:
    terms: list[Obj] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        for item in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(item.get("podAffinityTerm") or {})
    return any(term.get("namespaces") or term.get("namespaceSelector") for term in terms)

"""What an object takes of its namespace's quotas, and which quotas count it. Pure.

Job: usage by resource name; scopes; amounts as dictionaries of quantities.
Invariant: admission and the controller count by this file, and by nothing else.
"""

from collections.abc import Iterable, Mapping

from sampan.api import pods, quantity
from sampan.api.objects import Obj, meta_of
from sampan.api.quantity import ZERO, Quantity
from sampan.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCES,
    SERVICES,
    Resource,
)

Usage = dict[str, Quantity]
ONE = quantity.from_value(1)
_LEGACY = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})
_BY_CLASS = ".storageclass.storage.k8s.io/"
_COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
            "ephemeral-storage", "requests.ephemeral-storage",
            "limits.ephemeral-storage")  # fmt: skip


def usage_of(resource: Resource, obj: Obj) -> Usage:
    """Everything that a quota might count of it."""
    if resource is PODS:
        return pods.quota_usage(obj)
    usage: Usage = {f"count/{resource.group_resource}": ONE}
    if resource is SERVICES:
        usage |= _of_service(obj)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        usage |= _of_claim(obj)
    elif resource.plural in _LEGACY and not resource.group:
        usage[resource.plural] = ONE
    return usage


def counted(quota: Obj, resource: Resource, obj: Obj) -> Usage:
    """What this quota counts of the object; empty: nothing."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    usage = {name: amount for name, amount in usage_of(resource, obj).items() if name in hard}
    return usage if usage and in_scope(quota, resource, obj) else {}


def in_scope(quota: Obj, resource: Resource, obj: Obj) -> bool:
    spec = quota.get("spec") or {}
    selector = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    requirements = [
        *({"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()),
        *selector,
    ]
    if not requirements:
        return True
    if resource is PODS:
        return all(_pod_matches(one, obj) for one in requirements)
    if resource is PERSISTENT_VOLUME_CLAIMS:
        return all(_claim_matches(one, obj) for one in requirements)
    return False


def resources_of(quota: Obj) -> list[Resource]:
    """The kinds of which the quota may count something."""
    hard = set((quota.get("spec") or {}).get("hard") or {})
    found = {}
    for name in hard:
        if name.startswith("count/"):
            for one in RESOURCES:
                if one.namespaced and one.group_resource == name[6:] and one.stored_in == ("", ""):
                    found[one.storage_prefix] = one
        elif name.startswith("services"):
            found[SERVICES.storage_prefix] = SERVICES
        elif name in _LEGACY:
            one = next(one for one in RESOURCES if one.plural == name and not one.group)
            found[one.storage_prefix] = one
        elif name in ("persistentvolumeclaims", "requests.storage") or _BY_CLASS in name:
            found[PERSISTENT_VOLUME_CLAIMS.storage_prefix] = PERSISTENT_VOLUME_CLAIMS
        else:
            found[PODS.storage_prefix] = PODS
    return list(found.values())


def total(quota: Obj, objects: Iterable[tuple[Resource, Obj]]) -> Usage:
    """What is used of the quota: every name of `hard`, zero where nothing is."""
    used: Usage = dict.fromkeys((quota.get("spec") or {}).get("hard") or {}, ZERO)
    for resource, obj in objects:
        used = added(used, counted(quota, resource, obj))
    return used


def unstated(quota: Obj, pod: Obj) -> dict[str, list[str]]:
    """Compute resources that the quota limits and containers say nothing about: → their names."""
    spec = pod.get("spec") or {}
    own = spec.get("resources") or {}
    missing: dict[str, list[str]] = {}
    for name in sorted((quota.get("spec") or {}).get("hard") or {}):
        if name not in _COMPUTE:
            continue
        kind, _, plain = name.rpartition(".")
        kind = kind or "requests"
        if plain in (own.get(kind) or {}):
            continue
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            if plain not in ((container.get("resources") or {}).get(kind) or {}):
                missing.setdefault(name, []).append(container.get("name") or "")
    return missing


def added(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    result = dict(one)
    for name, amount in other.items():
        result[name] = result.get(name, ZERO) + amount
    return result


def less(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    """What is left of `one` after `other` is taken; negative where it grew smaller."""
    result = dict(one)
    for name, amount in other.items():
        result[name] = quantity.Quantity(result.get(name, ZERO).nanos - amount.nanos,
                                         amount.format)  # fmt: skip
    return result


def amounts(written: Mapping[str, str] | None) -> Usage:
    return {name: quantity.parse(str(text)) for name, text in (written or {}).items()}


def written(usage: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(usage.items())}


def _of_service(service: Obj) -> Usage:
    spec = service.get("spec") or {}
    usage = {"services": ONE, "services.nodeports": ZERO, "services.loadbalancers": ZERO}
    kind, ports = spec.get("type"), spec.get("ports") or ()
    if kind == "NodePort":
        usage["services.nodeports"] = quantity.from_value(len(ports))
    elif kind == "LoadBalancer":
        usage["services.loadbalancers"] = ONE
        count = len(ports)
        if spec.get("allocateLoadBalancerNodePorts") is False:
            count = sum(1 for port in ports if port.get("nodePort"))
        usage["services.nodeports"] = quantity.from_value(count)
    return usage


def _of_claim(claim: Obj) -> Usage:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    given = (status.get("allocatedResources") or {}).get("storage")
    sizes = [quantity.parse(str(one)) for one in (asked, given) if one is not None]
    usage: Usage = {"persistentvolumeclaims": ONE}
    if sizes:
        usage["requests.storage"] = max(sizes)
    name = spec.get("storageClassName") or (meta_of(claim).get("annotations") or {}).get(
        "volume.beta.kubernetes.io/storage-class"
    )
    if name:
        for of in list(usage):
            usage[f"{name}{_BY_CLASS}{of}"] = usage[of]
    return usage


def _pod_matches(requirement: Obj, pod: Obj) -> bool:
    spec = pod.get("spec") or {}
    match requirement.get("scopeName"):
        case "Terminating":
            return (spec.get("activeDeadlineSeconds") or -1) >= 0
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return pods.qos_class(pod) == "BestEffort"
        case "NotBestEffort":
            return pods.qos_class(pod) != "BestEffort"
        case "PriorityClass":
            return _named(requirement, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(spec.get("affinity") or {})
    return False


def _claim_matches(requirement: Obj, claim: Obj) -> bool:
    if requirement.get("scopeName") != "VolumeAttributesClass":
        return False
    return _named(requirement, (claim.get("spec") or {}).get("volumeAttributesClassName") or "")


def _named(requirement: Obj, name: str) -> bool:
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in values
        case "NotIn":
            return bool(name) and name not in values
    return False


def _crosses_namespaces(affinity: Obj) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
        if any(one.get("namespaces") or one.get("namespaceSelector") is not None for one in terms):
            return True
    return False

"""Quota arithmetic: the usage of a write, what is left, the message of a refusal. Pure.

Job: amounts as dictionaries of quantities, on top of api/rules/quota.py, which says what counts.
"""

from collections.abc import Callable, Mapping

from sampan.api import quantity
from sampan.api.objects import Obj, spec_of
from sampan.api.quantity import ZERO, Quantity
from sampan.api.resources import Resource
from sampan.api.rules.pod_resources import Amounts
from sampan.api.rules.quota import COUNTED, counts, measured_resource, usage_of

_COMPUTE = frozenset({
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
    "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage",
})  # fmt: skip


def count_of(quota: Obj, resource: Resource, obj: Obj) -> Amounts:
    """What this quota counts of the object; empty: nothing."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    usage = {name: amount for name, amount in usage_of(resource, obj).items() if name in hard}
    return usage if usage and counts(quota, resource, obj) else {}


def resources_of(quota: Obj, is_defined: Callable[[str], bool]) -> list[Resource]:
    """The kinds of which the quota may count something. `is_defined`: whether a definition has
    such a name; a quota may name thousands of kinds that nobody has."""
    found: dict[tuple[str, str], Resource] = {}
    for name in (quota.get("spec") or {}).get("hard") or {}:
        resource = COUNTED.get(name)
        if resource is None and name.startswith("count/") and not is_defined(name[len("count/") :]):
            continue
        resource = resource or measured_resource(name)
        found[resource.plural, resource.group] = resource
    return list(found.values())


def zeros(quota: Obj) -> Amounts:
    """Every name of `hard`."""
    return dict.fromkeys((quota.get("spec") or {}).get("hard") or {}, ZERO)


def unstated_resources(quota: Obj, pod: Obj) -> dict[str, list[str]]:
    """Compute resources that the quota limits and containers say nothing about: → their names."""
    spec = spec_of(pod)
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    missing: dict[str, list[str]] = {}
    for name in sorted(_COMPUTE & (spec_of(quota).get("hard") or {}).keys()):
        kind, _, plain = name.rpartition(".")
        if _states(spec, kind, plain):
            continue
        silent = [
            container.get("name") or ""
            for container in containers
            if not _states(container, kind, plain)
        ]
        if silent:
            missing[name] = silent
    return missing


def _states(holder: Obj, kind: str, plain: str) -> bool:
    """Of a container, or of a whole pod: whether it says how much it wants."""
    return plain in ((holder.get("resources") or {}).get(kind or "requests") or {})


def add(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Amounts:
    result = dict(one)
    for name, amount in other.items():
        result[name] = result.get(name, ZERO) + amount
    return result


def less(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Amounts:
    """What is left of `one` after `other` is taken; negative where it grew smaller."""
    result = dict(one)
    for name, amount in other.items():
        left = result.get(name, ZERO).nanos - amount.nanos
        result[name] = Quantity(left, amount.format)
    return result


def amounts(text: Mapping[str, str] | None) -> Amounts:
    return {name: quantity.value_of(item) for name, item in (text or {}).items()}


def quantities(usage: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(usage.items())}

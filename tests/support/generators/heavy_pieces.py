"""What heavy objects are made of: long lists of few bytes of meaning.

Job: lists, maps, selectors, containers and pods of as many items as one asks for.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.objects import Obj

Make = Callable[[int], Obj]
LABELS = {"a": "b"}
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def numbered(count: int, **more: Any) -> list[Obj]:
    return [{"name": f"n{number}", **more} for number in range(count)]


def each(count: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(number) for number in range(count)]


def values(count: int) -> list[str]:
    return [f"v{number}" for number in range(count)]


def keys(count: int) -> dict[str, str]:
    return {f"k{number}": "v" for number in range(count)}


def expressions(count: int, operator: str = "NotIn") -> list[Obj]:
    wanted = {} if operator in ("Exists", "DoesNotExist") else {"values": ["v"]}
    return [{"key": f"k{n}", "operator": operator, **wanted} for n in range(count)]


def one_of(count: int) -> list[Obj]:
    return [{"key": "k", "operator": "NotIn", "values": values(count)}]


def container(**more: Any) -> Obj:
    return {"name": "c", "image": "i", **more}


def pod_spec(**more: Any) -> Obj:
    return {"containers": [container()], "terminationGracePeriodSeconds": 0, **more}


def pod(metadata: Obj | None = None, **spec: Any) -> Obj:
    return {"metadata": {"name": "x", **(metadata or {})}, "spec": pod_spec(**spec)}


def with_container(**more: Any) -> Obj:
    return pod(containers=[container(**more)])


def affinity(kind: str, *, required: Any = None, preferred: Any = None) -> Obj:
    found: Obj = {}
    if required is not None:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred is not None:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {"affinity": {kind: found}}


def near(number: int, **more: Any) -> Obj:
    return {"topologyKey": f"t{number}", "labelSelector": {"matchLabels": {"a": "b"}}, **more}


def secret_volume(number: int) -> Obj:
    return {"name": f"n{number}", "secret": {"secretName": f"s{number}"}}


def owners(count: int) -> list[Obj]:
    """References, as metadata.ownerReferences has them."""
    return each(
        count,
        lambda k: {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{k}", "uid": str(k)},
    )

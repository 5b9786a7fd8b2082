"""Objects as heavy as validation lets them be, and over: a long list of something.

Job: `SHAPES`: by name, what makes an object of a kind of which one list, map or text has `count`
    items; `drawn` draws one of them, at and over its limits.
"""

import random
from collections.abc import Iterator, Sequence

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from tests.support.generators.heavy_network import heavy_network
from tests.support.generators.heavy_pieces import (
    CLAIM,
    Make,
    each,
    expressions,
    keys,
    numbered,
    one_of,
    owners,
    values,
)
from tests.support.generators.heavy_pods import heavy_pods
from tests.support.generators.heavy_workloads import heavy_workloads


@dataclass(frozen=True, slots=True)
class Shape:
    path: str  # of the collection that it is created in
    make: Make
    most: int  # items that validation, or the bound on objects, lets through


def _others() -> Iterator[tuple[str, str, int, Make]]:
    core, named = "/api/v1/namespaces/{namespace}", {"metadata": {"name": "x"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    scalers = "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    yield (
        "autoscaler of metrics",
        scalers,
        3_000,
        lambda n: {
            **named,
            "spec": {
                "scaleTargetRef": target,
                "maxReplicas": 3,
                "metrics": each(
                    n,
                    lambda k: {
                        "type": "Pods",
                        "pods": {
                            "metric": {"name": f"m{k}"},
                            "target": {"type": "AverageValue", "averageValue": "1"},
                        },
                    },
                ),
            },
        },
    )
    yield (
        "autoscaler of resources",
        scalers,
        3_000,
        lambda n: {
            **named,
            "spec": {
                "scaleTargetRef": target,
                "maxReplicas": 3,
                "metrics": each(
                    n,
                    lambda k: {
                        "type": "ContainerResource",
                        "containerResource": {
                            "name": "cpu",
                            "container": f"c{k}",
                            "target": {"type": "Utilization", "averageUtilization": 1},
                        },
                    },
                ),
            },
        },
    )
    yield (
        "autoscaler of policies",
        scalers,
        15_000,
        lambda n: {
            **named,
            "spec": {
                "scaleTargetRef": target,
                "maxReplicas": 3,
                "behavior": {
                    "scaleUp": {
                        "policies": each(
                            n, lambda k: {"type": "Pods", "value": 1, "periodSeconds": 1}
                        )
                    }
                },
            },
        },
    )
    budgets = "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    yield (
        "budget of expressions",
        budgets,
        15_000,
        lambda n: _budget(expressions(n)),
    )
    yield (
        "budget of values",
        budgets,
        100_000,
        lambda n: _budget(one_of(n)),
    )
    yield (
        "quota of resources",
        f"{core}/resourcequotas",
        20_000,
        lambda n: {
            **named,
            "spec": {"hard": {f"count/r{k}.example.com": "1000000" for k in range(n)}},
        },
    )
    yield (
        "quota of classes",
        f"{core}/resourcequotas",
        20_000,
        lambda n: {
            **named,
            "spec": {
                "hard": {"pods": "1000000"},
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": values(n)}
                    ]
                },
            },
        },
    )
    yield (
        "limits",
        f"{core}/limitranges",
        4_000,
        lambda n: {
            **named,
            "spec": {
                "limits": [{"type": "Container", "max": {f"e.com/r{k}": "1" for k in range(n)}}]
            },
        },
    )
    yield (
        "claim of expressions",
        f"{core}/persistentvolumeclaims",
        15_000,
        lambda n: {
            **named,
            "spec": {
                **CLAIM["spec"],
                "storageClassName": "",
                "selector": {"matchExpressions": expressions(n)},
            },
        },
    )
    yield (
        "account of secrets",
        f"{core}/serviceaccounts",
        40_000,
        lambda n: {**named, "secrets": numbered(n), "imagePullSecrets": numbered(n // 2)},
    )
    yield "config of keys", f"{core}/configmaps", 60_000, lambda n: {**named, "data": keys(n)}
    yield "secret of keys", f"{core}/secrets", 60_000, lambda n: {**named, "stringData": keys(n)}
    yield (
        "labels of a config",
        f"{core}/configmaps",
        60_000,
        lambda n: {"metadata": {"name": "x", "labels": keys(n)}},
    )
    yield (
        "owners of a config",
        f"{core}/configmaps",
        10_000,
        lambda n: {"metadata": {"name": "x", "ownerReferences": owners(n)}},
    )
    yield (
        "Role of rules",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
        10_000,
        (
            lambda n: {
                **named,
                "rules": each(
                    n, lambda k: {"apiGroups": [""], "resources": [f"r{k}"], "verbs": ["get"]}
                ),
            }
        ),
    )
    yield (
        "Lease",
        "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
        50_000,
        lambda n: {"metadata": {"name": "x", "labels": keys(n)}, "spec": {"holderIdentity": "x"}},
    )


def _budget(expressions: list[Obj]) -> Obj:
    spec = {"minAvailable": 1, "selector": {"matchExpressions": expressions}}
    return {"metadata": {"name": "x"}, "spec": spec}


def _shapes() -> Iterator[tuple[str, Shape]]:
    for name, most, make in heavy_pods():
        yield f"pod of {name}", Shape("/api/v1/namespaces/{namespace}/pods", make, most)
    for rows in (heavy_workloads(), heavy_network(), _others()):
        for name, path, most, make in rows:
            yield name, Shape(path, make, most)


SHAPES: dict[str, Shape] = dict(_shapes())


def drawn(rng: random.Random, names: Sequence[str] = tuple(SHAPES)) -> tuple[str, Shape, Obj]:
    """One in ten as large as it may be or a quarter larger; the others of any size, small ones more
    often."""
    name = rng.choice(names)
    shape = SHAPES[name]
    most = rng.choice((shape.most, shape.most * 5 // 4))
    count = most if rng.random() < 0.1 else int(2 ** rng.uniform(0, most.bit_length()))
    return name, shape, shape.make(max(min(count, most), 1))

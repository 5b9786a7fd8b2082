"""Workloads as heavy as validation lets them be: templates and selectors of thousands of items.

Job: `heavy_workloads`: by name, where one is created, how many items it may have, what makes it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sampan.api.objects import Obj
from tests.support.generators.heavy_pieces import (
    CLAIM,
    LABELS,
    Make,
    affinity,
    container,
    each,
    expressions,
    near,
    numbered,
    one_of,
    pod_spec,
    secret_volume,
)


def _selecting(count: int, kind: str, selector: Obj, **more: Any) -> Obj:
    template = {"metadata": {"labels": LABELS}, "spec": pod_spec()}
    if kind == "Job":
        return {
            "metadata": {"name": "x"},
            "spec": {"template": {"spec": pod_spec(restartPolicy="Never")}, **more},
        }
    spec = {"selector": {"matchLabels": LABELS, **selector}, "template": template, **more}
    return {"metadata": {"name": "x"}, "spec": spec}


_WORKLOADS = {
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
}


_TEMPLATES: dict[str, tuple[int, Make]] = {
    "secret volumes": (4_000, lambda n: {"volumes": each(n, secret_volume)}),
    "containers": (1_500, lambda n: {"containers": numbered(n, image="i")}),
    "variables": (12_000, lambda n: {"containers": [container(env=numbered(n, value="v"))]}),
    "tolerations": (
        12_000,
        lambda n: {"tolerations": each(n, lambda k: {"key": f"k{k}", "operator": "Exists"})},
    ),
    "node selector terms": (
        8_000,
        lambda n: affinity(
            "nodeAffinity",
            required={
                "nodeSelectorTerms": each(
                    n, lambda k: {"matchExpressions": expressions(1, "DoesNotExist")}
                )
            },
        ),
    ),
    "anti-affinity terms": (5_000, lambda n: affinity("podAntiAffinity", required=each(n, near))),
}


def _selecting_by(kind: str, more: Obj, how: Callable[[int], list[Obj]]) -> Make:
    return lambda n: _selecting(n, kind, {"matchExpressions": how(n)}, **more)


def _of_template(more: Obj, spec: Make) -> Make:
    return lambda n: {
        "metadata": {"name": "x"},
        "spec": {
            "selector": {"matchLabels": LABELS},
            **more,
            "template": {"metadata": {"labels": LABELS}, "spec": pod_spec(**spec(n))},
        },
    }


def _job_of(spec: Make) -> Make:
    return lambda n: {
        "metadata": {"name": "x"},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "template": {"spec": pod_spec(restartPolicy="Never", **spec(n))},
        },
    }


def heavy_workloads() -> Iterator[tuple[str, str, int, Make]]:
    for kind, plural in _WORKLOADS.items():
        path = f"/apis/apps/v1/namespaces/{{namespace}}/{plural}"
        more: Obj = {} if kind == "DaemonSet" else {"replicas": 2}
        yield (
            f"{kind} of expressions",
            path,
            15_000,
            _selecting_by(kind, more, expressions),
        )
        yield (
            f"{kind} of values",
            path,
            100_000,
            _selecting_by(kind, more, one_of),
        )
        for name, (most, spec) in _TEMPLATES.items():
            yield (
                f"{kind} of {name}",
                path,
                most,
                _of_template(more, spec),
            )
    yield (
        "StatefulSet of claims",
        "/apis/apps/v1/namespaces/{namespace}/statefulsets",
        6_000,
        lambda n: _selecting(
            n,
            "StatefulSet",
            {},
            replicas=2,
            serviceName="x",
            volumeClaimTemplates=each(n, lambda k: {"metadata": {"name": f"n{k}"}, **CLAIM}),
        ),
    )
    for name, (most, spec) in _TEMPLATES.items():
        yield (
            f"Job of {name}",
            "/apis/batch/v1/namespaces/{namespace}/jobs",
            most,
            _job_of(spec),
        )

"""Pods as heavy as validation lets them be: few bytes of meaning, a long list of it.

Job: `heavy_pods`: by name, how many items of which list, map or text a pod may have, and what makes
    one of so many.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj
from tests.support.generators.heavy_pieces import (
    Make,
    affinity,
    container,
    each,
    expressions,
    keys,
    near,
    numbered,
    one_of,
    owners,
    pod,
    secret_volume,
    values,
    with_container,
)


def _of_volumes() -> Iterator[tuple[str, int, Make]]:
    yield "secret volumes", 8_000, lambda n: pod(volumes=each(n, secret_volume))
    yield (
        "config volumes",
        8_000,
        lambda n: pod(volumes=numbered(n, configMap={"name": "kube-root-ca.crt"})),
    )
    yield (
        "optional secrets",
        8_000,
        lambda n: pod(
            volumes=each(
                n, lambda k: {"name": f"n{k}", "secret": {"secretName": f"s{k}", "optional": True}}
            )
        ),
    )
    yield "empty directories", 8_000, lambda n: pod(volumes=numbered(n, emptyDir={}))
    yield "host paths", 8_000, lambda n: pod(volumes=numbered(n, hostPath={"path": "/nowhere"}))
    yield (
        "claims",
        8_000,
        lambda n: pod(
            volumes=each(
                n, lambda k: {"name": f"n{k}", "persistentVolumeClaim": {"claimName": f"c{k}"}}
            )
        ),
    )
    yield (
        "ephemeral volumes",
        1_500,
        lambda n: pod(
            volumes=numbered(
                n,
                ephemeral={
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            )
        ),
    )
    yield "inline drivers", 8_000, lambda n: pod(volumes=numbered(n, csi={"driver": "d.example"}))
    yield "image volumes", 8_000, lambda n: pod(volumes=numbered(n, image={"reference": "i"}))
    yield (
        "projected sources",
        12_000,
        lambda n: pod(
            volumes=[
                {
                    "name": "v",
                    "projected": {
                        "sources": each(
                            n, lambda k: {"secret": {"name": f"s{k}", "optional": True}}
                        )
                    },
                }
            ]
        ),
    )
    yield (
        "projected items",
        12_000,
        lambda n: pod(
            volumes=[
                {
                    "name": "v",
                    "configMap": {
                        "name": "kube-root-ca.crt",
                        "items": each(n, lambda k: {"key": "ca.crt", "path": f"p{k}"}),
                    },
                }
            ]
        ),
    )
    yield (
        "fields in files",
        12_000,
        lambda n: pod(
            volumes=[
                {
                    "name": "v",
                    "downwardAPI": {
                        "items": each(
                            n,
                            lambda k: {
                                "path": f"p{k}",
                                "fieldRef": {"fieldPath": "metadata.annotations"},
                            },
                        )
                    },
                }
            ]
        ),
    )


def _of_containers() -> Iterator[tuple[str, int, Make]]:
    yield "containers", 3_000, lambda n: pod(containers=numbered(n, image="i"))
    yield "init containers", 3_000, lambda n: pod(initContainers=numbered(n, image="i"))
    yield (
        "sidecars",
        3_000,
        lambda n: pod(initContainers=numbered(n, image="i", restartPolicy="Always")),
    )
    yield "variables", 20_000, lambda n: with_container(env=numbered(n, value="v"))
    yield (
        "variables of secrets",
        9_000,
        lambda n: with_container(
            env=each(
                n,
                lambda k: {
                    "name": f"n{k}",
                    "valueFrom": {"secretKeyRef": {"name": f"s{k}", "key": "k", "optional": True}},
                },
            )
        ),
    )
    yield (
        "variables of one object",
        9_000,
        lambda n: with_container(
            env=numbered(
                n, valueFrom={"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "ca.crt"}}
            )
        ),
    )
    yield (
        "variables of fields",
        9_000,
        lambda n: (
            with_container(
                env=numbered(n, valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['a']"}})
            )
            | {"metadata": {"name": "x", "annotations": {"a": "x" * 200_000}}}
        ),
    )
    yield (
        "variables that double",
        4_000,
        lambda n: with_container(
            env=each(n, lambda k: {"name": f"n{k + 1}", "value": f"$(n{k})$(n{k})x"})
        ),
    )
    yield (
        "envFrom",
        10_000,
        lambda n: with_container(
            envFrom=each(n, lambda k: {"configMapRef": {"name": f"m{k}", "optional": True}})
        ),
    )
    yield (
        "envFrom of one object",
        10_000,
        lambda n: with_container(
            envFrom=each(
                n, lambda k: {"prefix": f"P{k}_", "configMapRef": {"name": "kube-root-ca.crt"}}
            )
        ),
    )
    yield "arguments", 100_000, lambda n: with_container(args=values(n))
    yield (
        "arguments that expand",
        50_000,
        lambda n: with_container(
            env=[{"name": "A", "value": "x" * 100_000}], args=["$(A)$(A)"] * n
        ),
    )
    yield (
        "ports",
        20_000,
        lambda n: with_container(
            ports=each(
                n,
                lambda k: {
                    "containerPort": k % 65_535 + 1,
                    "protocol": "TCP" if k < 65_535 else "UDP",
                },
            )
        ),
    )
    yield (
        "host ports",
        20_000,
        lambda n: with_container(
            ports=each(n, lambda k: {"containerPort": k % 65_535 + 1, "hostPort": k % 65_535 + 1})
        ),
    )
    yield (
        "mounts",
        12_000,
        lambda n: pod(
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[
                container(
                    volumeMounts=each(
                        n, lambda k: {"name": "v", "mountPath": f"/m{k}", "subPath": f"{k}"}
                    )
                )
            ],
        ),
    )


def _spread(count: int, when: str) -> Obj:
    constraint = {
        "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"a": "b"}},
    }  # fmt: skip
    return pod(
        topologySpreadConstraints=each(count, lambda k: {"topologyKey": f"t{k}", **constraint})
    )


def _of_neighbours(kind: str) -> Iterator[tuple[str, int, Make]]:
    yield (
        f"{kind} terms",
        8_000,
        lambda n: pod(**affinity(kind, required=each(n, near))),
    )
    yield (
        f"{kind} preferred",
        8_000,
        lambda n: pod(
            **affinity(kind, preferred=each(n, lambda k: {"weight": 1, "podAffinityTerm": near(k)}))
        ),
    )
    yield (
        f"{kind} expressions",
        15_000,
        lambda n: pod(
            **affinity(
                kind,
                required=[
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchExpressions": expressions(n)},
                    }
                ],
            )
        ),
    )
    yield (
        f"{kind} namespaces",
        90_000,
        lambda n: pod(**affinity(kind, required=[near(0, namespaces=values(n))])),
    )
    yield (
        f"{kind} namespace selectors",
        8_000,
        lambda n: pod(
            **affinity(
                kind,
                required=each(
                    n, lambda k: near(k, namespaceSelector={"matchLabels": {f"k{k}": "v"}})
                ),
            )
        ),
    )


def _of_placement() -> Iterator[tuple[str, int, Make]]:
    yield (
        "tolerations",
        20_000,
        lambda n: pod(tolerations=each(n, lambda k: {"key": f"k{k}", "operator": "Exists"})),
    )
    yield (
        "tolerations that expire",
        20_000,
        lambda n: pod(
            tolerations=each(
                n,
                lambda k: {
                    "key": f"k{k}",
                    "operator": "Exists",
                    "tolerationSeconds": k,
                    "effect": "NoExecute",
                },
            )
        ),
    )
    yield (
        "node selector terms",
        15_000,
        lambda n: pod(
            **affinity(
                "nodeAffinity",
                required={
                    "nodeSelectorTerms": each(
                        n, lambda k: {"matchExpressions": expressions(1, "Exists")}
                    )
                },
            )
        ),
    )
    yield (
        "node selector expressions",
        15_000,
        lambda n: pod(
            **affinity(
                "nodeAffinity",
                required={"nodeSelectorTerms": [{"matchExpressions": expressions(n, "NotIn")}]},
            )
        ),
    )
    yield (
        "node selector values",
        100_000,
        lambda n: pod(
            **affinity(
                "nodeAffinity", required={"nodeSelectorTerms": [{"matchExpressions": one_of(n)}]}
            )
        ),
    )
    yield (
        "node fields",
        12_000,
        lambda n: pod(
            **affinity(
                "nodeAffinity",
                required={
                    "nodeSelectorTerms": each(
                        n,
                        lambda k: {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": [f"n{k}"]}
                            ]
                        },
                    )
                },
            )
        ),
    )
    yield (
        "numbers of nodes",
        10_000,
        lambda n: pod(
            **affinity(
                "nodeAffinity",
                required={
                    "nodeSelectorTerms": each(
                        n,
                        lambda k: {
                            "matchExpressions": [{"key": "k", "operator": "Gt", "values": [str(k)]}]
                        },
                    )
                },
            )
        ),
    )
    yield (
        "preferred nodes",
        10_000,
        lambda n: pod(
            **affinity(
                "nodeAffinity",
                preferred=each(
                    n,
                    lambda k: {
                        "weight": 1,
                        "preference": {"matchExpressions": expressions(1, "NotIn")},
                    },
                ),
            )
        ),
    )
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _of_neighbours(kind)
    yield (
        "spread constraints",
        5_000,
        lambda n: _spread(n, "ScheduleAnyway"),
    )
    yield (
        "spread constraints that must hold",
        5_000,
        lambda n: _spread(n, "DoNotSchedule"),
    )
    yield (
        "spread expressions",
        15_000,
        lambda n: pod(
            topologySpreadConstraints=[
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "maxSkew": 1,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchExpressions": expressions(n)},
                }
            ]
        ),
    )


def _of_the_rest() -> Iterator[tuple[str, int, Make]]:
    yield (
        "host aliases",
        20_000,
        lambda n: pod(
            hostAliases=each(
                n, lambda k: {"ip": f"10.0.{k // 256 % 256}.{k % 256}", "hostnames": ["a"]}
            )
        ),
    )
    yield (
        "names of an alias",
        100_000,
        lambda n: pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": values(n)}]),
    )
    yield "pull secrets", 40_000, lambda n: pod(imagePullSecrets=numbered(n))
    yield "scheduling gates", 40_000, lambda n: pod(schedulingGates=numbered(n))
    yield (
        "readiness gates",
        20_000,
        lambda n: pod(readinessGates=each(n, lambda k: {"conditionType": f"c{k}"})),
    )
    yield (
        "groups",
        100_000,
        lambda n: pod(securityContext={"supplementalGroups": list(range(1, n + 1))}),
    )
    yield (
        "kernel parameters",
        15_000,
        lambda n: pod(
            securityContext={"sysctls": each(n, lambda k: {"name": f"net.x{k}", "value": "1"})}
        ),
    )
    yield "node labels", 60_000, lambda n: pod(nodeSelector=keys(n))
    yield "labels", 60_000, lambda n: pod({"labels": keys(n)})
    yield "annotations", 20_000, lambda n: pod({"annotations": keys(n)})
    yield "finalizers", 50_000, lambda n: pod({"finalizers": each(n, lambda k: f"a.b/{k}")})
    yield (
        "owners",
        10_000,
        lambda n: pod({"ownerReferences": owners(n)}),
    )
    yield (
        "resources",
        20_000,
        lambda n: with_container(resources={"limits": {f"e.com/r{k}": "1" for k in range(n)}}),
    )
    yield (
        "resources of containers",
        1_500,
        lambda n: pod(
            containers=numbered(
                n,
                image="i",
                resources={
                    "requests": {"cpu": "1m", "memory": "1Ki", "e.com/a": "0"},
                    "limits": {"e.com/a": "0"},
                },
            )
        ),
    )
    yield (
        "probes",
        1_500,
        lambda n: pod(containers=numbered(n, image="i", readinessProbe={"tcpSocket": {"port": 1}})),
    )


def heavy_pods() -> Iterator[tuple[str, int, Make]]:
    for part in (_of_volumes, _of_containers, _of_placement, _of_the_rest):
        yield from part()

"""Scheduling: every filter and what it says, scores where one node must win, gates, preemption.

Lives of this file have the three nodes for themselves.
"""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import deployment, made, pod
from tests.support.workload_lives.steps import (
    Life,
    Step,
    change_meta,
    change_spec,
    change_status,
    create,
    label,
    life,
    remove,
    taint,
    wait,
)


def _alone(*steps: Step, places: bool = True) -> Life:
    return life(*steps, alone=True, places=places)


def _required(*expressions: Obj, fields: tuple[Obj, ...] = ()) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"nodeSelectorTerms": [{name: one for name, one in term.items() if one}]}
    return {"affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }}  # fmt: skip


def _preferred(weight: int, *expressions: Obj) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": {"matchExpressions": list(expressions)}}]
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    }


def _expression(key: str, operator: str, *values: str) -> Obj:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _pod_terms(kind: str, *, weight: int = 0, key: str = "zone", **term: Any) -> dict[str, Any]:
    """`kind`: podAffinity or podAntiAffinity; with a weight it is a preference."""
    wanted = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": key, **term}
    when = "IgnoredDuringExecution"
    if weight:
        terms = {
            f"preferredDuringScheduling{when}": [{"weight": weight, "podAffinityTerm": wanted}]
        }
    else:
        terms = {f"requiredDuringScheduling{when}": [wanted]}
    return {"affinity": {kind: terms}}


def _spread(skew: int = 1, when: str = "DoNotSchedule", **words: Any) -> dict[str, Any]:
    constraint = {
        "maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"a": "b"}}, **words,
    }  # fmt: skip
    return {"topologySpreadConstraints": [constraint]}


def _ports(port: int, **words: Any) -> list[Obj]:
    return [
        {"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": port, **words}]}
    ]


def _on(node: str, name: str, **words: Any) -> Obj:
    return pod(name, nodeName=node, **words)


_TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
_SOFT = {"key": "k", "value": "v", "effect": "PreferNoSchedule"}

_FILTERS = {
    "node-selector": _alone(create(deployment(replicas=2, pod={"nodeSelector": {"zone": "z1"}})),
                            wait(4)),
    "node-selector-nowhere": _alone(create(pod("x", nodeSelector={"zone": "none"})), wait(3),
                                    label("n1", zone="none"), wait(4)),
    "node-affinity-in": _alone(
        create(pod("x", **_required(_expression("zone", "In", "z1", "z7")))), wait(3)
    ),
    "node-affinity-not-in": _alone(
        create(pod("x", **_required(_expression("zone", "NotIn", "z0", "z1")))), wait(3)
    ),
    "node-affinity-exists": _alone(
        create(pod("x", **_required(_expression("gpu", "Exists")))), wait(3),
        label("n2", gpu="yes"), wait(4),
    ),
    "node-affinity-gt": _alone(
        label("n0", size="3"), label("n1", size="7"), wait(1),
        create(pod("x", **_required(_expression("size", "Gt", "5")))),
        create(pod("y", **_required(_expression("size", "Lt", "2")))), wait(4),
    ),
    "node-affinity-fields": _alone(
        create(pod("x", **_required(fields=(_expression("metadata.name", "In", "n2"),)))),
        create(pod("y", **_required(fields=(_expression("metadata.name", "In", "absent"),)))),
        wait(4),
    ),
    "node-affinity-preferred": _alone(
        create(deployment(replicas=3, pod=_preferred(100, _expression("zone", "In", "z1")))),
        wait(4),
    ),
    "node-name": _alone(create(_on("n1", "x")), wait(3)),
    "node-name-absent": _alone(create(_on("absent", "x")), wait(4)),
    "node-cordoned": _alone(
        *(change_spec("nodes", f"n{number}", unschedulable=True) for number in range(3)), wait(1),
        create(pod("x")), create(pod("y", tolerations=[
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
            nodeSelector={"zone": "z0"})),
        wait(3), change_spec("nodes", "n1", unschedulable=False), wait(4),
    ),
    "taint-kept-out": _alone(
        *(taint(f"n{number}", _TAINT) for number in range(3)), wait(1),
        create(pod("x")), create(pod("y", tolerations=[{"key": "k", "operator": "Exists"}],
                                     nodeSelector={"zone": "z0"})),
        create(pod("z", tolerations=[{"key": "k", "operator": "Equal", "value": "other"}])),
        wait(3), taint("n1"), wait(4),
    ),
    "taint-two-kinds": _alone(
        taint("n0", _TAINT), taint("n1", {**_TAINT, "key": "other"}), taint("n2", _TAINT), wait(1),
        create(pod("x")), wait(3),
    ),
    "taint-preferred": _alone(
        taint("n0", _SOFT), taint("n1", _SOFT), wait(1), create(pod("x")), create(pod("y")),
        wait(4),
    ),
    "ports-taken": _alone(
        create(deployment(replicas=4, pod={"containers": _ports(8080)})), wait(4)
    ),
    "ports-by-address": _alone(
        create(deployment("d", 3, pod={"containers": _ports(8080, hostIP="10.0.0.9")})),
        create(deployment("e", 3, pod={
            "labels": {"e": "e"}, "containers": _ports(8080, hostIP="10.0.0.8")})),
        wait(4), create(pod("any", labels={"z": "z"}, containers=_ports(8080))), wait(4),
    ),
    "ports-by-protocol": _alone(
        create(deployment("d", 3, pod={"containers": _ports(8080)})),
        create(deployment("e", 3, pod={
            "labels": {"e": "e"}, "containers": _ports(8080, protocol="UDP")})),
        wait(4),
    ),
    "ports-freed": _alone(
        create(deployment(replicas=3, pod={"containers": _ports(8080)})), wait(3),
        create(pod("x", labels={"x": "x"}, containers=_ports(8080))), wait(3),
        change_spec("deployments", "d", replicas=2), wait(5),
    ),
    "fit-cpu": _alone(create(deployment(replicas=4, pod={"cpu": "5"})), wait(4)),
    "fit-freed": _alone(
        create(deployment(replicas=3, pod={"cpu": "5"})), wait(3), create(pod("x",
        labels={"x": "x"},
               cpu="5")),
        wait(3), change_spec("deployments", "d", replicas=2), wait(5),
    ),
    "fit-several-reasons": _alone(
        create(pod("x", containers=[{"name": "c", "image": "x", "resources": {
            "requests": {"cpu": "9", "memory": "17Gi", "example.com/none": "1"},
            "limits": {"example.com/none": "1"}}}])),
        wait(3),
    ),
    "fit-extended": _alone(
        change_status("nodes", "n1", capacity={"example.com/gpu": "2"},
                      allocatable={"example.com/gpu": "2"}),
        wait(1),
        create(deployment(replicas=3, pod={"containers": [{"name": "c", "image": "x", "resources": {
            "limits": {"example.com/gpu": "1"}}}]})),
        wait(4),
    ),
    "fit-init-containers": _alone(
        create(pod("x", cpu="1", initContainers=[{"name": "i", "image": "x", "resources": {
            "requests": {"cpu": "9"}}}])),
        create(pod("y", cpu="1", initContainers=[{"name": "i", "image": "x", "resources": {
            "requests": {"cpu": "7"}}, "restartPolicy": "Always"}])),
        create(pod("z", cpu="2", initContainers=[{"name": "i", "image": "x", "resources": {
            "requests": {"cpu": "7"}}, "restartPolicy": "Always"}])),
        wait(4),
    ),
    "fit-pod-level": _alone(
        create(pod("x", resources={"requests": {"cpu": "9"}})),
        create(pod("y", resources={"requests": {"cpu": "7"}})), wait(4),
    ),
    "fit-overhead": _alone(
        create(made("node.k8s.io/v1", "RuntimeClass", "{life}.heavy", handler="h",
                    overhead={"podFixed": {"cpu": "7"}})),
        wait(1), create(pod("x", cpu="2", runtimeClassName="{life}.heavy")),
        create(pod("y", cpu="1", runtimeClassName="{life}.heavy")), wait(4),
    ),
    "fit-runtime-class-selects": _alone(
        create(made("node.k8s.io/v1", "RuntimeClass", "{life}.here", handler="h", scheduling={
            "nodeSelector": {"zone": "z2"}, "tolerations": [{"key": "k", "operator": "Exists"}]})),
        wait(1), create(pod("x", runtimeClassName="{life}.here")), wait(4),
    ),
    "gated-twice": _alone(
        create(pod("x", schedulingGates=[{"name": "a.b/1"}, {"name": "a.b/2"}])), wait(2),
        change_spec("pods", "x", schedulingGates=[{"name": "a.b/2"}]), wait(2),
        change_spec("pods", "x", schedulingGates=[]), wait(3),
    ),
    "gated-selector-narrowed": _alone(
        create(pod("x", schedulingGates=[{"name": "a.b/1"}])), wait(2),
        change_spec("pods", "x", nodeSelector={"zone": "z1"}),
        change_spec("pods", "x", schedulingGates=[]), wait(3),
    ),
    "scheduler-of-another-name": _alone(create(pod("x", schedulerName="mine")), wait(3)),
    "unschedulable-then-deleted": _alone(
        create(deployment(replicas=1, pod={"cpu": "100"})), wait(3), remove("deployments", "d"),
        wait(3),
    ),
}  # fmt: skip

_AMONG_PODS = {
    "affinity-to-a-zone": _alone(
        create(_on("n1", "x")), wait(2),
        create(deployment("e", 2, pod={"labels": {"e": "e"}, **_pod_terms("podAffinity")})),
        wait(4),
    ),
    "affinity-to-nobody": _alone(
        create(pod("x", labels={"x": "x"}, **_pod_terms("podAffinity"))), wait(3),
        create(_on("n2", "y")), wait(4),
    ),
    "affinity-to-itself": _alone(
        create(deployment(replicas=3, pod=_pod_terms("podAffinity"))), wait(4)
    ),
    "affinity-other-namespace": _alone(
        create(made("v1", "Namespace", "{ns}-b", meta={"labels": {"team": "{life}"}})), wait(2),
        create({**_on("n1", "x"), "metadata": {
            "name": "x", "namespace": "{ns}-b", "labels": {"a": "b"}}}),
        wait(2),
        create(pod("own", labels={"x": "x"}, **_pod_terms("podAffinity"))),
        create(pod("by-name", labels={"x": "x"}, **_pod_terms(
            "podAffinity", namespaces=["{ns}-b"]))),
        create(pod("by-label", labels={"x": "x"}, **_pod_terms(
            "podAffinity", namespaceSelector={"matchLabels": {"team": "{life}"}}))),
        wait(4),
    ),
    "affinity-preferred": _alone(
        create(_on("n1", "x")), wait(2),
        create(pod("y", labels={"y": "y"}, **_pod_terms("podAffinity", weight=100))), wait(3),
    ),
    "anti-affinity": _alone(
        create(deployment(replicas=4, pod=_pod_terms("podAntiAffinity"))), wait(4)
    ),
    "anti-affinity-freed": _alone(
        create(deployment(replicas=4, pod=_pod_terms("podAntiAffinity"))), wait(3),
        remove("pods", "a=b#0"), wait(5),
    ),
    "anti-affinity-of-others": _alone(
        *(create(_on(f"n{number}", f"x{number}", labels={"x": "x"},
                     **_pod_terms("podAntiAffinity"))) for number in range(3)),
        wait(2), create(pod("y")), wait(4),
    ),
    "anti-affinity-preferred": _alone(
        create(deployment(replicas=3, pod=_pod_terms("podAntiAffinity", weight=100))), wait(4)
    ),
    "anti-affinity-match-label-keys": _alone(
        create(deployment(replicas=3, pod=_pod_terms(
            "podAntiAffinity", matchLabelKeys=["pod-template-hash"]))),
        wait(4), change_spec("deployments", "d", template={"spec": {"containers": [
            {"name": "c", "image": "y"}]}}),
        wait(8),
    ),
    "anti-affinity-mismatch-label-keys": _alone(
        create(deployment("d", 1, pod={"labels": {"a": "b", "t": "1"}, **_pod_terms(
            "podAntiAffinity", mismatchLabelKeys=["t"])})),
        create(deployment("e", 1, pod={"labels": {"a": "b", "t": "2"}, **_pod_terms(
            "podAntiAffinity", mismatchLabelKeys=["t"])})),
        wait(4),
    ),
    "spread-uneven": _alone(
        create(deployment(replicas=5, pod=_spread())), wait(4),
        change_spec("deployments", "d", replicas=7), wait(4),
    ),
    "spread-kept": _alone(
        taint("n2", _TAINT), wait(1), create(deployment(replicas=3, pod=_spread())), wait(4)
    ),
    "spread-taints-honoured": _alone(
        taint("n2", _TAINT), wait(1),
        create(deployment(replicas=4, pod=_spread(nodeTaintsPolicy="Honor"))), wait(4),
    ),
    "spread-affinity-ignored": _alone(
        create(deployment(replicas=3, pod={
            **_spread(nodeAffinityPolicy="Ignore"), "nodeSelector": {"zone": "z1"}})),
        wait(4),
    ),
    "spread-min-domains": _alone(
        create(deployment(replicas=4, pod=_spread(minDomains=4))), wait(4)
    ),
    "spread-without-the-key": _alone(
        label("n2", zone=None), wait(1), create(deployment(replicas=4, pod=_spread())), wait(4)
    ),
    "spread-anyway": _alone(
        create(deployment(replicas=6, pod=_spread(when="ScheduleAnyway"))), wait(4)
    ),
    "spread-by-default": _alone(create(deployment(replicas=6)), wait(4)),
    "spread-wide": _alone(
        create(deployment(replicas=6, pod={**_spread(skew=3), "nodeSelector": {"zone": "z0"}})),
        wait(4),
    ),
    "spread-others-count": _alone(
        create(_on("n0", "x0"), _on("n0", "x1"), _on("n1", "x2")), wait(2),
        create(deployment(replicas=3, pod=_spread())), wait(4),
    ),
    "spread-when-labels-change": _alone(
        create(deployment(replicas=3, pod=_spread())), wait(3),
        taint("n0", _TAINT), taint("n1", _TAINT), wait(1),
        change_spec("deployments", "d", replicas=5), wait(3),
        change_meta("pods", "a=b on n2", labels={"a": "c"}), wait(4),
    ),
}  # fmt: skip

_SCORES = {
    "score-least-allocated": _alone(
        create(_on("n0", "a0", cpu="6", labels={"x": "x"})),
        create(_on("n1", "a1", cpu="4", labels={"x": "x"})), wait(2),
        create(pod("y", cpu="1")), wait(3),
    ),
    "score-images": _alone(
        change_status("nodes", "n1", images=[
            {"names": ["big:v1"], "sizeBytes": 900_000_000}]),
        wait(1), create(pod("y", image="big:v1")), wait(3),
    ),
    "score-weights": _alone(
        create(pod("y", **_preferred(1, _expression("zone", "In", "z2")))), wait(3)
    ),
}  # fmt: skip


def _class(name: str, value: int, **rest: Any) -> Obj:
    return made("scheduling.k8s.io/v1", "PriorityClass", f"{{life}}.{name}", value=value, **rest)


def _classes(**rest: Any) -> Step:
    return create(_class("low", 10), _class("high", 1000, **rest))


def _low(*words: Any, pod_words: dict[str, Any] | None = None, **spec: Any) -> Obj:
    own = {"priorityClassName": "{life}.low", "cpu": "6", **(pod_words or {})}
    return deployment(*words, pod=own, **spec)


def _high(name: str = "vip", **words: Any) -> Obj:
    return pod(name, labels={"v": "v"}, priorityClassName="{life}.high", **{"cpu": "6", **words})


_PREEMPTION = {
    "preempts-one": _alone(_classes(), create(_low()), wait(3), create(_high()), wait(6)),
    "preempts-in-vain": _alone(
        _classes(), create(_low()), wait(3), create(_high(cpu="9")), wait(4)
    ),
    "preempts-equals-not": _alone(
        _classes(), create(_low()), wait(3),
        create(pod("same", labels={"v": "v"}, priorityClassName="{life}.low", cpu="6")), wait(4),
    ),
    "preempts-several": _alone(
        _classes(), create(_low("d", 6, pod_words={"cpu": "3"})), wait(3), create(_high()), wait(6),
    ),
    "preempts-the-lowest": _alone(
        create(_class("low", 10), _class("mid", 50), _class("high", 1000)),
        create(pod("m0", labels={"m": "m"}, priorityClassName="{life}.mid", cpu="6",
        nodeName="n0")),
        create(pod("m1", labels={"m": "m"}, priorityClassName="{life}.low", cpu="6",
        nodeName="n1")),
        create(pod("m2", labels={"m": "m"}, priorityClassName="{life}.mid", cpu="6",
        nodeName="n2")),
        wait(3), create(_high()), wait(5),
    ),
    "preempts-for-ports": _alone(
        _classes(),
        create(deployment(replicas=3, pod={
            "priorityClassName": "{life}.low", "containers": _ports(8080)})),
        wait(3), create(_high(containers=_ports(8080), cpu="")), wait(5),
    ),
    "priority-by-default": _alone(
        create(_class("usual", 7, globalDefault=True)), wait(2), create(pod("x")), wait(3)
    ),
    "priority-class-deleted": _alone(
        create(_class("low", 10)), wait(1),
        create(_low("d", 1)), wait(3), remove("priorityclasses", "{life}.low"), wait(1),
        remove("pods", "a=b#0"), wait(4),
    ),
    "priority-critical": _alone(
        create(pod("x", priorityClassName="system-cluster-critical")), wait(3)
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_FILTERS, **_AMONG_PODS, **_SCORES, **_PREEMPTION}

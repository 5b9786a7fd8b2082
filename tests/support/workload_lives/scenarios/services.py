"""Services: slices with hints, traffic distribution, terminating pods, Endpoints, addresses."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import (
    LABELS,
    deployment,
    image,
    made,
    pod,
    service,
    stateful_set,
)
from tests.support.workload_lives.steps import (
    Life,
    Step,
    change,
    change_meta,
    change_spec,
    change_status,
    create,
    label,
    life,
    remove,
    wait,
)

_ZONE = "topology.kubernetes.io/zone"


def _zones(*names: str) -> tuple[Step, ...]:
    return tuple(label(f"n{number}", **{_ZONE: name}) for number, name in enumerate(names))


def _annotated(mode: str = "Auto", **spec: Any) -> Obj:
    found = service(**spec)
    found["metadata"]["annotations"] = {"service.kubernetes.io/topology-mode": mode}
    return found


def _ports(*ports: tuple[str, int | str]) -> dict[str, Any]:
    return {"ports": [
        {"name": name, "port": 80 + number, "targetPort": target}
        for number, (name, target) in enumerate(ports)
    ]}  # fmt: skip


def _named_port(port: int, name: str = "http") -> dict[str, Any]:
    return {"containers": [{
        "name": "c", "image": "x", "ports": [{"name": name, "containerPort": port}]}]}  # fmt: skip


_SPREAD = {"topologySpreadConstraints": [{
    "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"a": "b"}}}]}  # fmt: skip
_UNREADY = {"conditions": [{"type": "Ready", "status": "False"}]}

_SLICES = {
    "slices-unready": life(create(service(), deployment(replicas=2, pod={"life": "notready"})),
                           wait(4)),
    "slices-published-unready": life(
        create(service(publishNotReadyAddresses=True),
               deployment(replicas=2, pod={"life": "notready"})),
        wait(4),
    ),
    "slices-terminating": life(
        create(service(), deployment(replicas=2, pod={"stop": "5:0"})), wait(3),
        change_spec("deployments", "d", replicas=1), wait(2),
    ),
    "slices-last-terminating": life(
        create(service(), deployment(replicas=1, pod={"stop": "5:0"})), wait(3),
        change_spec("deployments", "d", replicas=0), wait(2),
    ),
    "slices-pod-turns": life(
        create(service(), deployment(replicas=2)), wait(3),
        change_status("pods", "a=b#0", **_UNREADY), wait(3),
    ),
    "slices-finished-pod": life(
        create(service(), pod("x", life="ok:1", restartPolicy="Never"), pod("y")), wait(4)
    ),
    "slices-rolled": life(
        create(service(), deployment(replicas=2)), wait(3),
        change_spec("deployments", "d", **image("y")), wait(6),
    ),
    "slices-headless": life(create(service(clusterIP="None"), stateful_set(replicas=2)), wait(6)),
    "slices-headless-hostnames": life(
        create(service("h", clusterIP="None"),
               pod("x", hostname="first", subdomain="h"), pod("y", hostname="second")),
        wait(4),
    ),
    "slices-named-ports": life(
        create(service(**_ports(("h", "http"))),
               pod("x", **_named_port(8080)), pod("y", **_named_port(9090)), pod("z")),
        wait(4),
    ),
    "slices-two-ports": life(
        create(service(**_ports(("h", "http"), ("i", 7070))),
               pod("x", **_named_port(8080)), pod("y")),
        wait(4),
    ),
    "slices-selector-changed": life(
        create(service(), pod("x"), pod("y", labels={"c": "d"})), wait(3),
        change_spec("services", "s", selector={"a": None, "c": "d"}), wait(3),
    ),
    "slices-relabelled-pod": life(
        create(service(), pod("x")), wait(3), change_meta("pods", "x", labels={"a": "c"}), wait(3)
    ),
    "slices-service-labelled": life(
        create(service(), pod("x")), wait(3), change_meta("services", "s", labels={"l": "m"}),
        wait(3),
    ),
    "slices-ports-changed": life(
        create(service(), pod("x")), wait(3), change_spec("services", "s", ports=[
            {"name": "h", "port": 80, "targetPort": 9090}]),
        wait(3),
    ),
    "slices-service-deleted": life(
        create(service(), pod("x")), wait(3), remove("services", "s"), wait(3)
    ),
    "slices-deleted-by-hand": life(
        create(service(), pod("x")), wait(3),
        remove("endpointslices", "kubernetes.io/service-name=s#0"), wait(3),
    ),
    "slices-spoilt-by-hand": life(
        create(service(), pod("x")), wait(3),
        change("endpointslices", "kubernetes.io/service-name=s#0", endpoints=[]), wait(3),
    ),
    "slices-no-pods": life(create(service()), wait(3)),
    "slices-no-selector": life(create(service(selector=None), pod("x")), wait(3)),
    "slices-selector-taken": life(
        create(service(), pod("x")), wait(3), change_spec("services", "s", selector=None), wait(3)
    ),
    "slices-external-name": life(
        create(service(), pod("x")), wait(3),
        change_spec("services", "s", type="ExternalName", externalName="x.example.com",
                    clusterIP=None, clusterIPs=None),
        wait(3),
    ),
    "slices-becomes-headless": life(
        create(service("h", clusterIP="None"), pod("x")), wait(3), remove("services", "h"),
        create(service("h")), wait(3),
    ),
    "slices-two-services": life(
        create(service("s"), service("t", **_ports(("i", 9090))), pod("x")), wait(3)
    ),
    "slices-on-a-host": life(create(service(), pod("x", hostNetwork=True)), wait(3)),
    "slices-of-a-lost-pod": life(
        create(service(), pod("x", stop="9:0")), wait(3), remove("pods", "x"), wait(2)
    ),
}  # fmt: skip

_HINTS = {
    "hints-prefer-close": life(
        *_zones("a", "b", "c"), create(service(trafficDistribution="PreferClose")),
        create(deployment(replicas=3, pod=_SPREAD)), wait(5),
    ),
    "hints-prefer-same-zone": life(
        *_zones("a", "a", "b"), create(service(trafficDistribution="PreferSameZone")),
        create(deployment(replicas=3, pod=_SPREAD)), wait(5),
    ),
    "hints-prefer-same-node": life(
        *_zones("a", "a", "b"), create(service(trafficDistribution="PreferSameNode")),
        create(deployment(replicas=3, pod=_SPREAD)), wait(5),
    ),
    "hints-turned-on": life(
        *_zones("a", "b", "c"), create(service()), create(deployment(replicas=3, pod=_SPREAD)),
        wait(4), change_spec("services", "s", trafficDistribution="PreferClose"), wait(3),
        change_spec("services", "s", trafficDistribution=None), wait(3),
    ),
    "hints-auto": life(
        *_zones("a", "b", "c"), create(_annotated()),
        create(deployment(replicas=6, pod=_SPREAD)), wait(6),
    ),
    "hints-auto-no-zones": life(
        create(_annotated()), create(deployment(replicas=3, pod=_SPREAD)), wait(5)
    ),
    "hints-auto-one-zone": life(
        *_zones("a", "a", "a"), create(_annotated()),
        create(deployment(replicas=3, pod=_SPREAD)), wait(5),
    ),
    "hints-auto-and-distribution": life(
        *_zones("a", "b", "c"), create(_annotated(trafficDistribution="PreferClose")),
        create(deployment(replicas=3, pod=_SPREAD)), wait(5),
    ),
}  # fmt: skip


def _endpoints(**words: Any) -> Obj:
    subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"name": "h", "port": 80}], **words}
    return made("v1", "Endpoints", "s", None, subsets=[subset])


_BY_HAND = {
    "endpoints-mirrored": life(create(service(selector=None), _endpoints()), wait(4)),
    "endpoints-mirrored-first": life(
        create(_endpoints()), wait(2), create(service(selector=None)), wait(4)
    ),
    "endpoints-mirrored-changed": life(
        create(service(selector=None), _endpoints()), wait(3),
        change("endpoints", "s", subsets=[
            {"addresses": [{"ip": "10.1.2.4"}], "notReadyAddresses": [{"ip": "10.1.2.5"}],
             "ports": [{"name": "h", "port": 81}, {"name": "i", "port": 82}]}]),
        wait(3),
    ),
    "endpoints-mirrored-gone": life(
        create(service(selector=None), _endpoints()), wait(3), remove("services", "s"), wait(4)
    ),
    "endpoints-deleted": life(
        create(service(selector=None), _endpoints()), wait(3), remove("endpoints", "s"), wait(4)
    ),
    "endpoints-not-mirrored": life(
        create(service(selector=None)),
        create({**_endpoints(), "metadata": {"name": "s", "labels": {
            "endpointslice.kubernetes.io/skip-mirror": "true"}}}),
        wait(4),
    ),
    "endpoints-two-subsets": life(
        create(service(selector=None, **_ports(("h", 80), ("i", 81)))),
        create(made("v1", "Endpoints", "s", None, subsets=[
            {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"name": "h", "port": 80}]},
            {"addresses": [{"ip": "10.1.2.4", "hostname": "x"}], "ports": [
                {"name": "i", "port": 81, "protocol": "UDP"}]}])),
        wait(4),
    ),
    "endpoints-of-pods-by-hand": life(
        create(service(), pod("x")), wait(3), change("endpoints", "s", subsets=[]), wait(3)
    ),
    "endpoints-labels": life(
        create({**service(), "metadata": {"name": "s", "labels": {"l": "m"},
                "annotations": {"n": "o"}}}, pod("x")),
        wait(4),
    ),
}  # fmt: skip

_TYPES = {
    "service-node-port": life(create(service(type="NodePort"), pod("x")), wait(3)),
    "service-load-balancer": life(create(service(type="LoadBalancer"), pod("x")), wait(3)),
    "service-local": life(
        create(service(type="LoadBalancer", externalTrafficPolicy="Local"), pod("x")), wait(3)
    ),
    "service-types": life(
        create(service()), change_spec("services", "s", type="NodePort"), wait(1),
        change_spec("services", "s", type="LoadBalancer"), wait(1),
        change_spec("services", "s", type="ClusterIP"), wait(2),
    ),
    "service-address-taken": life(
        create(service("s", clusterIP="10.96.77.1")), create(service("t", clusterIP="10.96.77.1")),
        create(service("u", clusterIP="10.200.0.1")), wait(2),
    ),
    "service-affinity": life(create(service(sessionAffinity="ClientIP"), pod("x")), wait(3)),
    "service-selects-all": life(create(service(selector=dict(LABELS, c="d")), pod("x")), wait(3)),
}  # fmt: skip

LIVES: dict[str, Life] = {**_SLICES, **_HINTS, **_BY_HAND, **_TYPES}

"""Defaults of services, endpoints, slices, ingresses and network policies.

Job: fill in protocols, ports and policies, as upstream does.
Invariant: a service's port is also its target, unless it says otherwise.
"""

from sampan.api.defaults.fill import fill, part_of, spec_of
from sampan.api.objects import Obj

_AFFINITY_SECONDS = 10800


def default_service(obj: Obj) -> None:
    spec = spec_of(obj)
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = part_of(part_of(spec, "sessionAffinityConfig"), "clientIP")
        fill(client, timeoutSeconds=_AFFINITY_SECONDS)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (None, "", 0) and port.get("port"):
            port["targetPort"] = port["port"]
    kind = spec["type"]
    reachable = kind in ("NodePort", "LoadBalancer") or (
        kind == "ClusterIP" and spec.get("externalIPs")
    )
    if reachable and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        fill(spec, internalTrafficPolicy="Cluster")
    if kind == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip"):
                fill(ingress, ipMode="VIP")


def default_endpoints(obj: Obj) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def default_endpoint_slice(obj: Obj) -> None:
    for port in obj.get("ports") or ():
        fill(port, name="", protocol="TCP")


def default_network_policy(obj: Obj) -> None:
    spec = spec_of(obj)
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") is not None else [])]


def default_ingress_class(obj: Obj) -> None:
    parameters = spec_of(obj).get("parameters")
    if parameters is not None:
        fill(parameters, scope="Cluster")

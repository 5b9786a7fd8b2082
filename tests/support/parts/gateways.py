"""Objects of the Gateway API, as small as they may be, and definitions that take them."""

from collections.abc import Iterator, Mapping, Sequence

from sampan.api.objects import Obj
from sampan.network.gateway.world import CONTROLLER, World

GROUP = "gateway.networking.k8s.io"
PORTS = {"HTTP": {80: 80}, "HTTPS": {443: 443}}
_KINDS = {
    "gatewayclasses": ("GatewayClass", "Cluster", "v1"),
    "gateways": ("Gateway", "Namespaced", "v1"),
    "httproutes": ("HTTPRoute", "Namespaced", "v1"),
    "referencegrants": ("ReferenceGrant", "Namespaced", "v1beta1"),
}


def definitions() -> Iterator[Obj]:
    """Ours: the published ones say what fields there are; these keep whatever is written."""
    whole = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for plural, (kind, scope, version) in _KINDS.items():
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{plural}.{GROUP}",
                "annotations": {"api-approved.kubernetes.io": "https://example.com"},
            },
            "spec": {
                "group": GROUP,
                "scope": scope,
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": version,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": whole},
                        "subresources": {"status": {}},
                    }
                ],
            },
        }


def gateway_class(name: str = "sampan", controller: str = CONTROLLER, **spec: object) -> Obj:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "GatewayClass",
        "metadata": {"name": name, "generation": 1},
        "spec": {"controllerName": controller, **spec},
    }


def listener(name: str = "http", port: int = 80, protocol: str = "HTTP", **more: object) -> Obj:
    return {"name": name, "port": port, "protocol": protocol, **more}


def gateway(
    *listeners: Obj, name: str = "gw", namespace: str = "infra", gateway_class: str = "sampan",
    **spec: object,
) -> Obj:  # fmt: skip
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {
            "gatewayClassName": gateway_class,
            "listeners": list(listeners) or [listener()],
            **spec,
        },
    }


def backend(name: str = "web", **more: object) -> Obj:
    return {"name": name, "port": 80, **more}


def rule(path: str = "/", *backends: Obj, kind: str = "PathPrefix", **more: object) -> Obj:
    matches = [{"path": {"type": kind, "value": path}}]
    return {"matches": matches, "backendRefs": list(backends) or [backend()], **more}


def http_route(
    *rules: Obj, name: str = "r", namespace: str = "infra", parent: Obj | None = None,
    hostnames: Sequence[str] = (), created: str = "2024",
) -> Obj:  # fmt: skip
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "generation": 1,
            "creationTimestamp": created,
        },
        "spec": {
            "parentRefs": [parent or {"name": "gw", "namespace": "infra"}],
            "hostnames": list(hostnames),
            "rules": list(rules) or [rule()],
        },
    }


def service(name: str = "web", namespace: str = "infra", **spec: object) -> Obj:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def world(
    gateways: Sequence[Obj] = (), routes: Sequence[Obj] = (), *,
    classes: Sequence[Obj] | None = None, services: Sequence[Obj] | None = None,
    namespaces: Sequence[Obj] = (), grants: Sequence[Obj] = (),
    secrets: Mapping[str, Obj] | None = None,
) -> World:  # fmt: skip
    """`services`: the one that rules lead to, unless others are given."""
    found = {
        "{namespace}/{name}".format(**each["metadata"]): each
        for each in ([service()] if services is None else services)
    }
    homes = {each["metadata"]["name"]: each for each in namespaces}
    return World(
        [gateway_class()] if classes is None else classes,
        list(gateways),
        list(routes),
        grants,
        found.get,
        (secrets or {}).get,
        homes.get,
        [{"type": "Hostname", "value": "localhost"}],
        PORTS,
    )

"""Bootstrap objects: namespaces, the kubernetes Service, ServiceCIDR, priority classes.

Job: name the objects that the server creates at its start if they are missing. Pure.
"""

import orjson

from sampan.api.objects import Obj
from sampan.api.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    NAMESPACES,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from sampan.api.rules.service_families import family_of
from sampan.api.rules.tokens.account_token import NODE_ACCOUNTS, NODE_ACCOUNTS_NAMESPACE
from sampan.apiserver.registry import namespaces
from sampan.apiserver.registry.services.service_claims import SERVICE_CIDRS
from sampan.apiserver.settings import ApiServerSettings

_FOLLOWING = {
    "configmaps": ("data",),
    "endpoints": ("subsets",),
    "endpointslices": ("endpoints", "ports"),
    "servicecidrs": ("spec",),  # a second family came
}
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_CRITICAL = (
    ("system-cluster-critical", 2000000000, "Used for system critical pods that must run in the "
     "cluster, but can be moved to another node if necessary."),
    ("system-node-critical", 2000001000, "Used for system critical pods that must not be moved "
     "from their current node."),
)  # fmt: skip


def bootstrap_objects(settings: ApiServerSettings, service_ip: str) -> list[tuple[Resource, Obj]]:
    """Fresh objects each time; the caller's to change."""
    return [
        *((NAMESPACES, _namespace(name)) for name in SYSTEM_NAMESPACES),
        *(
            content
            for name in SYSTEM_NAMESPACES
            for content in namespaces.contents(name, settings.ca_bundle_pem)
        ),
        *((SERVICE_ACCOUNTS, _node_account(name)) for name in NODE_ACCOUNTS),
        *((CONFIG_MAPS, item) for item in _authentication(settings)),
        *((PRIORITY_CLASSES, _priority_class(*item)) for item in _CRITICAL),
        (SERVICE_CIDRS, _service_cidr(settings)),
        (SERVICES, _service(settings, service_ip)),
        (ENDPOINTS, _endpoints(settings)),
        (ENDPOINT_SLICES, _endpoint_slice(settings)),
    ]


def brought_up_to_date(resource: Resource, found: Obj, now_wanted: Obj) -> Obj | None:
    """What says where the server is and whom to trust follows the settings; None: it does."""
    fields = _FOLLOWING.get(resource.plural, ())
    if resource.plural == "services":
        ports = (found.get("spec") or {}).get("ports")
        if ports == now_wanted["spec"]["ports"]:
            return None
        return {**found, "spec": {**found["spec"], "ports": now_wanted["spec"]["ports"]}}
    changed = {
        field: now_wanted[field] for field in fields if found.get(field) != now_wanted[field]
    }
    return {**found, **changed} if changed else None


def _authentication(settings: ApiServerSettings) -> list[Obj]:
    """Whom other servers of the cluster may believe: what every one of them asks for first."""
    data: dict[str, str] = {}
    if settings.client_ca_pem:
        data["client-ca-file"] = settings.client_ca_pem.decode()
    front, own = settings.front_proxy, settings.proxy_client
    if front is not None or own is not None:
        bundles = [front.ca_pem.decode()] if front is not None else []
        names = list(front.allowed_names) if front is not None else []
        if own is not None:
            bundles.append(own.ca_pem)
            # No names at all allow every name; one more would take the others out.
            names += [own.common_name] if front is None or names else []
        data |= {
            "requestheader-client-ca-file": "".join(bundles),
            "requestheader-allowed-names": orjson.dumps(names).decode(),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return [{**head, "metadata": metadata, "data": data}] if data else []


def _namespace(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _node_account(name: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": NODE_ACCOUNTS_NAMESPACE},
    }


def _priority_class(name: str, value: int, description: str) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _service_cidr(settings: ApiServerSettings) -> Obj:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": list(settings.service_cidrs)},
        "status": {"conditions": [ready]},
    }


def _labels() -> Obj:
    return {"component": "apiserver", "provider": "kubernetes"}


def _service(settings: ApiServerSettings, service_ip: str) -> Obj:
    port = {
        "name": "https",
        "protocol": "TCP",
        "port": 443,
        "targetPort": settings.advertise_port,
    }
    spec: Obj = {
        "ports": [port],
        "clusterIP": service_ip,
        "clusterIPs": [service_ip],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": [family_of(service_ip)],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    metadata = {"name": "kubernetes", "namespace": "default", "labels": _labels()}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _endpoints(settings: ApiServerSettings) -> Obj:
    port = {"name": "https", "port": settings.advertise_port, "protocol": "TCP"}
    skip = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": skip},
        "subsets": [{"addresses": [{"ip": settings.advertise_address}], "ports": [port]}],
    }


def _endpoint_slice(settings: ApiServerSettings) -> Obj:
    labels = {"kubernetes.io/service-name": "kubernetes"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "addressType": family_of(settings.advertise_address),
        "endpoints": [{"addresses": [settings.advertise_address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": settings.advertise_port, "protocol": "TCP"}],
    }

"""Which pods stand behind a Service, and under which addresses and ports.

Job: what EndpointSlices and Endpoints have in common: selecting, ports, readiness. Pure.
"""

from collections.abc import Iterable, Mapping

from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of, namespace_of
from sampan.api.resources import PODS, SERVICES
from sampan.api.rules import pods as pod_facts
from sampan.client.indexer import IndexFunction, by_namespace
from sampan.controllers.controller import Caches
from sampan.core.fast_dataclass import dataclass

HEADLESS = "service.kubernetes.io/headless"
INDICES: Mapping[str, IndexFunction] = {"namespace": by_namespace}


@dataclass(frozen=True, slots=True)
class Port:
    name: str
    port: int
    protocol: str
    app_protocol: str = ""

    def as_object(self) -> Obj:
        port: Obj = {"name": self.name, "port": self.port, "protocol": self.protocol}
        return {**port, "appProtocol": self.app_protocol} if self.app_protocol else port


def has_endpoints(service: Obj) -> bool:
    """Whether its endpoints are ours to make: without a selector they are the user's."""
    spec = service.get("spec") or {}
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def is_headless(service: Obj) -> bool:
    return bool((service.get("spec") or {}).get("clusterIP") == "None")


def selects(service: Obj, labels: Mapping[str, str]) -> bool:
    selector = (service.get("spec") or {}).get("selector") or {}
    return bool(selector) and selector.items() <= labels.items()


def ports_of(service: Obj, pod: Obj) -> tuple[Port, ...]:
    """The service's ports on this pod; a named target that the pod does not have is left out."""
    found: list[Port] = []
    for item in (service.get("spec") or {}).get("ports") or ():
        number = _target(item, pod)
        if number:
            protocol = item.get("protocol") or "TCP"
            name, app = item.get("name") or "", item.get("appProtocol") or ""
            found.append(Port(name, number, protocol, app))
    return tuple(sorted(found, key=lambda port: (port.name, port.port, port.protocol)))


def addresses_of(pod: Obj, *, ipv6: bool) -> list[str]:
    listed = (pod.get("status") or {}).get("podIPs") or ()
    addresses = [item.get("ip", "") for item in listed]
    if not addresses and (pod.get("status") or {}).get("podIP"):
        addresses = [pod["status"]["podIP"]]
    return [address for address in addresses if address and (":" in address) == ipv6]


def families_of(service: Obj) -> list[str]:
    """IPv4, IPv6, in the service's order."""
    families: list[str] = (service.get("spec") or {}).get("ipFamilies") or []
    return families or ["IPv4"]


def target_of(pod: Obj) -> Obj:
    meta = pod["metadata"]
    return {
        "kind": "Pod",
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
    }


def hostname_of(service: Obj, pod: Obj) -> str:
    """Pods of a headless service have names of their own below it."""
    spec = pod.get("spec") or {}
    matches = spec.get("subdomain") == name_of(service)
    return str(spec.get("hostname") or "") if matches else ""


def services_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Wake: the services that select the pod, or did, where anything that they show changed."""
    pod = new if new is not None else old
    if pod is None:
        return ()
    services = caches(SERVICES).by("namespace", namespace_of(pod))
    if not any((service.get("spec") or {}).get("selector") for service in services):
        return ()  # the common case, and comparing pods costs more
    if old is not None and new is not None and _visible_fields(old) == _visible_fields(new):
        return ()
    sides = [labels_of(item) for item in (old, new) if item is not None]
    return [
        key_of(service) for service in services if any(selects(service, labels) for labels in sides)
    ]


def pods_of_service(caches: Caches, service: Obj) -> list[Obj]:
    pods = caches(PODS).by("namespace", namespace_of(service))
    return [pod for pod in pods if selects(service, labels_of(pod))]


def _visible_fields(pod: Obj) -> tuple[object, ...]:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    return (
        labels_of(pod),
        status.get("podIPs"),
        pod_facts.is_ready(pod),
        pod_facts.is_terminal(pod),
        is_deleted(pod),
        spec.get("nodeName"),
        spec.get("hostname"),
        spec.get("subdomain"),
    )


def _target(port: Obj, pod: Obj) -> int | None:
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, int):
        return target
    for container in pod_facts.all_containers(pod):
        for item in container.get("ports") or ():
            same = (item.get("protocol") or "TCP") == (port.get("protocol") or "TCP")
            if item.get("name") == target and same:
                return int(item["containerPort"])
    return None

"""Which pods stand behind a Service, and under which addresses and ports.

Job: what EndpointSlices and Endpoints have in common: selecting, ports, readiness. Pure.
"""

from collections.abc import Iterable, Mapping

from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of, namespace_of
from sampan.api.resources import PODS, SERVICES
from sampan.api.rules import aspects
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import looks_at
from sampan.client.indexer import IndexFunction
from sampan.client.label_index import (
    LABELS,
    SELECTOR,
    by_labels,
    by_selector,
    having,
    may_select,
)
from sampan.controllers.controller import Caches
from sampan.core.fast_dataclass import dataclass

HEADLESS = "service.kubernetes.io/headless"
OF_SERVICES: Mapping[str, IndexFunction] = {SELECTOR: by_selector}
OF_PODS: Mapping[str, IndexFunction] = {LABELS: by_labels}


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


@looks_at(aspects.ANYTHING & ~(aspects.OWNERS | aspects.OTHER))
def services_of_pod(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Wake: the services that select the pod, or did, where anything that they show changed."""
    pod = new if new is not None else old
    if pod is None:
        return ()
    services = caches(SERVICES)
    if not services.index_values(SELECTOR):
        return ()
    namespace = namespace_of(pod)
    sides = [labels_of(item) for item in (old, new) if item is not None]
    if len(sides) == 2 and sides[0] == sides[1]:
        sides.pop()
    keys = {
        key_of(service)
        for labels in sides
        for service in may_select(services, namespace, labels)
        if selects(service, labels)
    }
    if not keys or (old is not None and new is not None and _shows_the_same(old, new)):
        return ()
    return keys


def pods_of_service(caches: Caches, service: Obj) -> list[Obj]:
    labels = (service.get("spec") or {}).get("selector")
    if not labels:
        return []
    return having(caches(PODS), LABELS, namespace_of(service), labels)


def _shows_the_same(old: Obj, new: Obj) -> bool:
    return _visible_fields(old) == _visible_fields(new)


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

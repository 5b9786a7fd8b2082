"""Why a Service leads nowhere, and why a name does not resolve.

Job: a Service, its EndpointSlices and the pods of its namespace → what to look at, in words. Pure.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, key_of, labels_of, name_of, namespace_of
from sampan.api.rules import conditions
from sampan.api.rules.endpoint_slices import ready_endpoints, services_of_slice
from sampan.api.rules.selectors import match_labels
from sampan.network.dns import wire
from sampan.network.dns.zone import ClusterZone

MOST_NAMES = 5
PROXY_NAME = "service.kubernetes.io/service-proxy-name"


def service_lines(
    service: Obj, slices: Sequence[Obj], pods: Sequence[Obj], domain: str
) -> list[str]:
    spec = service.get("spec") or {}
    title = f"service {namespace_of(service)}/{name_of(service)}"
    name = f"{name_of(service)}.{namespace_of(service)}.svc.{domain}"
    if spec.get("type") == "ExternalName":
        return [f"{title} is an alias: {name} stands for {spec.get('externalName')}."]
    ready = ready_addresses(slices)
    where = "no address of its own" if spec.get("clusterIP") == "None" else spec.get("clusterIP")
    lines = [f"{title} ({spec.get('type') or 'ClusterIP'}, {where}) is {name}."]
    lines += _balancer_lines(service)
    if PROXY_NAME in labels_of(service):
        lines.append(f"Its label {PROXY_NAME} leaves it to another proxy than the nodes' own.")
    if ready:
        lines.append(f"It leads to {len(ready)} endpoint(s): {_few(ready)}.")
        if spec.get("internalTrafficPolicy") == "Local":
            lines.append("internalTrafficPolicy Local: pods reach endpoints of their own node only,"
                         f" and these are on {_few(_nodes(slices))}.")  # fmt: skip
        return [*lines, *_port_lines(service, pods)]
    lines.append("It has no ready endpoint: connections to it are refused.")
    return [*lines, *_causes(spec, slices, pods), *_port_lines(service, pods)]


def _balancer_lines(service: Obj) -> list[str]:
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    spec = service.get("spec") or {}
    if spec.get("type") != "LoadBalancer" or balancer.get("ingress"):
        return []
    if spec.get("loadBalancerClass"):
        return [f"It waits for an address from whoever serves the class {spec['loadBalancerClass']}"
                " of load balancers."]  # fmt: skip
    return ["It has no address outside of the cluster yet: no node can serve it, an older Service "
            "has its port (its events say so), or --service-lb is off."]  # fmt: skip


def _nodes(slices: Sequence[Obj]) -> list[str]:
    return sorted({
        entry.get("nodeName") or "no node"
        for piece in slices
        for entry in ready_endpoints(piece)
    })  # fmt: skip


def _causes(spec: Obj, slices: Sequence[Obj], pods: Sequence[Obj]) -> list[str]:
    selector = spec.get("selector") or {}
    if not selector:
        return ["It has no selector: somebody must write an EndpointSlice for it, and nobody has."]
    text = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    chosen = [pod for pod in pods if match_labels(selector).matches(labels_of(pod))]
    if not chosen:
        return [f"No pod has the labels {text}.", *_near_misses(selector, pods)]
    waiting = [pod for pod in chosen if not conditions.is_true(pod, "Ready")]
    end = ":" if waiting else "."
    lines = [f"{len(chosen)} pod(s) have the labels {text}, {len(waiting)} of them not Ready{end}"]
    for pod in waiting[:MOST_NAMES]:
        phase = (pod.get("status") or {}).get("phase") or "Pending"
        lines.append(f"  pod/{name_of(pod)} is {phase}: `sampan why pod/{name_of(pod)}` says more")
    if not waiting and not slices:
        lines.append("The endpointslice-controller has written nothing: does it run?")
    return lines


def _near_misses(selector: Obj, pods: Sequence[Obj]) -> list[str]:
    """A label that differs is the usual reason."""
    lines = []
    for key, value in sorted(selector.items()):
        others = {labels_of(pod)[key] for pod in pods if key in labels_of(pod)} - {value}
        if others:
            lines.append(f"There are pods with {key} = {_few(sorted(others))}, none with {value}.")
        elif not any(key in labels_of(pod) for pod in pods):
            lines.append(f"No pod of the namespace has a label {key}.")
    return lines


def _port_lines(service: Obj, pods: Sequence[Obj]) -> list[str]:
    """A target port that has a name, which some chosen pod does not know."""
    spec = service.get("spec") or {}
    chosen = [
        pod for pod in pods
        if spec.get("selector") and match_labels(spec["selector"]).matches(labels_of(pod))
    ]  # fmt: skip
    lines = []
    for port in spec.get("ports") or ():
        target = port.get("targetPort")
        lacking = [name_of(pod) for pod in chosen if isinstance(target, str) and not
                   _has_port(pod, target)]  # fmt: skip
        if lacking:
            lines.append(f"Port {port['port']}: {_few(lacking)} has no port named {target}.")
    return lines


def _has_port(pod: Obj, name: str) -> bool:
    return any(
        port.get("name") == name
        for container in (pod.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
    )


def name_lines(name: str, namespace: str, services: Sequence[Obj], slices: Sequence[Obj],
               domain: str) -> list[str]:  # fmt: skip
    """As a pod of `namespace` asks: with the search path that it has."""
    zone = ClusterZone(domain, ("0.0.0.0",))
    for service in services:
        own = [each for each in slices if _is_of(each, service)]
        zone.put(f"{namespace_of(service)}/{name_of(service)}", service, own)
    plain = name.rstrip(".").lower()
    tried = [plain]
    if not name.endswith("."):
        searched = [f"{plain}.{each}" for each in (f"{namespace}.svc.{domain}", f"svc.{domain}",
                    domain)]  # fmt: skip
        tried = [plain, *searched] if plain.count(".") >= 5 else [*searched, plain]
    for each in tried:
        if not zone.is_mine(each):
            if "." not in each:
                continue
            return [f"{name} is not of the cluster: the machine's name servers are asked for it.",
                    *_elsewhere(plain, services)]  # fmt: skip
        answers = [zone.answer(each, kind) for kind in (wire.A, wire.AAAA)]
        data = dict.fromkeys(str(record.data) for answer in answers for record in answer.answers)
        if data:
            return [f"{name} is {each}: {_few(list(data))}."]
        if answers[0].rcode == wire.NOERROR and each != domain:
            return [f"{each} is there, but has no address."]
    return [f"{name} is nobody's name: tried {_few(tried)}.", *_elsewhere(plain, services)]


def _elsewhere(name: str, services: Sequence[Obj]) -> list[str]:
    first = name.partition(".")[0]
    found = [each for each in services if name_of(each) == first]
    if not found:
        return []
    places = sorted(namespace_of(each) for each in found)
    lines = [f"There is a Service {first} in the namespace(s) {_few(places)}."]
    if any((each.get("spec") or {}).get("clusterIP") == "None" for each in found):
        lines.append("A headless one has a name only while it has a ready endpoint.")
    return lines


def _is_of(piece: Obj, service: Obj) -> bool:
    return key_of(service) in services_of_slice(piece)


def ready_addresses(slices: Sequence[Obj]) -> list[str]:
    found = {entry["addresses"][0] for piece in slices for entry in ready_endpoints(piece)}
    return sorted(found)


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    return f"{shown}, …" if len(names) > MOST_NAMES else shown

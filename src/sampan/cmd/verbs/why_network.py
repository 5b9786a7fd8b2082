"""`sampan why service|ingress/NAME`, `name/HOST`, `pod/A --to pod/B:PORT`: about the network.

Job: read what is needed from the API, ask the pure diagnoses, give lines. Reads only.
"""

import ipaddress
from collections import Counter

from sampan.api.errors import Forbidden, NotFound
from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.resources import (
    ENDPOINT_SLICES,
    INGRESS_CLASSES,
    INGRESSES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    by_kind,
)
from sampan.api.rules.endpoint_slices import SERVICE_NAME
from sampan.client.contract import Client
from sampan.cmd.diagnosis import ingress_diagnosis, service_diagnosis
from sampan.cmd.diagnosis.connection_diagnosis import (
    Endpoint,
    Rules,
    addresses_of_node,
    endpoints_of,
    judged_lines,
    service_connection_lines,
    view_of,
    view_of_address,
)
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CLUSTER_DOMAIN
from sampan.core.digits import is_digits
from sampan.network.dns import publish
from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.elements_of_pod import PodView, name_server_view
from sampan.network.policies.judgement import Connection

MOST_ENDPOINTS = 5  # of a Service are looked at


async def service(client: Client, namespace: str, name: str) -> list[str]:
    found = await client.get(SERVICES, namespace, name)
    selector = f"{SERVICE_NAME}={name}"
    slices = await client.list(ENDPOINT_SLICES, namespace, label_selector=selector)
    pods = await client.list(PODS, namespace)
    return service_diagnosis.service_lines(found, slices.items, pods.items, CLUSTER_DOMAIN)


async def ingress(client: Client, namespace: str, name: str) -> list[str]:
    found = await client.get(INGRESSES, namespace, name)
    classes = await client.list(INGRESS_CLASSES)
    services = {name_of(item): item for item in (await client.list(SERVICES, namespace)).items}
    ready: Counter[str] = Counter()
    for piece in (await client.list(ENDPOINT_SLICES, namespace)).items:
        owner = labels_of(piece).get(SERVICE_NAME, "")
        ready[owner] += len(service_diagnosis.ready_addresses([piece]))
    return ingress_diagnosis.ingress_lines(found, classes.items, services, ready)


async def host_name(client: Client, namespace: str, name: str) -> list[str]:
    services, slices = await client.list(SERVICES), await client.list(ENDPOINT_SLICES)
    return service_diagnosis.name_lines(
        name, namespace, services.items, slices.items, CLUSTER_DOMAIN
    )


async def connection(client: Client, namespace: str, name: str, target: str) -> list[str]:
    """`target`: [NAMESPACE/]POD:PORT[/PROTOCOL], service/ and the same of a Service, or an
    address instead of a pod."""
    kind, place, port, protocol = parsed_target(target)
    other_namespace, _, other = place.rpartition("/")
    there = (other_namespace or namespace, other)
    pod = await client.get(PODS, namespace, name)
    source, rules = view_of(pod), await _rules(client, pod)
    if kind == "address":
        asked = Connection(source, view_of_address(place), protocol, port)
        return judged_lines(f"pod {namespace}/{name} to {place}", asked, rules)
    title = f"pod {namespace}/{name} to {kind} {'/'.join(there)}"
    if kind == "pod":
        asked = Connection(source, view_of(await client.get(PODS, *there)), protocol, port)
        return judged_lines(title, asked, rules)
    found = await client.get(SERVICES, *there)
    selector = f"{SERVICE_NAME}={other}"
    slices = await client.list(ENDPOINT_SLICES, there[0], label_selector=selector)
    behind = endpoints_of(found, slices.items, port, protocol)
    if not behind:
        return [f"{title}, {protocol} {port}: it leads nowhere.", *await service(client, *there)]
    asked_of = []
    for endpoint in behind[:MOST_ENDPOINTS]:
        view = await _view_of_endpoint(client, there, endpoint)
        asked_of.append((endpoint, Connection(source, view, protocol, endpoint.port)))
    return service_connection_lines(f"{title}, {protocol} {port}", asked_of, rules)


async def _view_of_endpoint(
    client: Client, service: tuple[str, str], endpoint: Endpoint
) -> PodView:
    if endpoint.pod:
        return view_of(await client.get(PODS, service[0], endpoint.pod))
    if service == (publish.NAMESPACE, publish.NAME):
        return name_server_view([endpoint.address])
    return view_of_address(endpoint.address)


async def _rules(client: Client, pod: Obj) -> Rules:
    resource = by_kind("networking.k8s.io/v1", "NetworkPolicy")
    assert resource is not None
    policies = [compile_policy(each) for each in (await client.list(resource)).items]
    namespaces = {name_of(each): labels_of(each) for each in (await client.list(NAMESPACES)).items}
    return Rules(policies, namespaces, addresses_of_node(pod, await _node_of(client, pod)))


async def _node_of(client: Client, pod: Obj) -> Obj | None:
    """None where the caller may not know."""
    try:
        return await client.get(NODES, "", (pod.get("spec") or {}).get("nodeName") or "")
    except (NotFound, Forbidden):
        return None


def parsed_target(target: str) -> tuple[str, str, int, str]:
    """(pod, service or address; [namespace/]name or address; port; protocol)"""
    kind = "service" if target.startswith(("service/", "svc/")) else "pod"
    text = target.removeprefix("pod/").removeprefix("service/").removeprefix("svc/")
    place, _, rest = text.rpartition(":")
    number, _, protocol = rest.partition("/")
    if kind == "pod" and _is_address(place.strip("[]")):
        kind, place = "address", place.strip("[]")
    if not place or not is_digits(number):
        raise CannotStart(
            f"{target!r} is no target: write --to [service/][NAMESPACE/]NAME:PORT[/UDP], or "
            "ADDRESS:PORT"
        )
    return kind, place, int(number), (protocol or "TCP").upper()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

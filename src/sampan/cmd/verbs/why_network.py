"""`sampan why service|ingress/NAME`, `name/HOST`, `pod/A --to pod/B:PORT`: about the network.

Job: read what is needed from the API, ask the pure diagnoses, give lines. Reads only.
"""

from collections import Counter

from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.resources import (
    ENDPOINT_SLICES,
    INGRESS_CLASSES,
    INGRESSES,
    NAMESPACES,
    PODS,
    SERVICES,
    by_kind,
)
from sampan.client.contract import Client
from sampan.cmd.diagnosis import ingress_diagnosis, service_diagnosis
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CLUSTER_DOMAIN
from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.elements_of_pod import PodView, pod_view
from sampan.network.policies.judgement import Connection, Judgement, judgements

_WORDS = {"egress": "leave", "ingress": "come in"}


async def service(client: Client, namespace: str, name: str) -> list[str]:
    found = await client.get(SERVICES, namespace, name)
    selector = f"kubernetes.io/service-name={name}"
    slices = await client.list(ENDPOINT_SLICES, namespace, label_selector=selector)
    pods = await client.list(PODS, namespace)
    return service_diagnosis.service_lines(found, slices.items, pods.items, CLUSTER_DOMAIN)


async def ingress(client: Client, namespace: str, name: str) -> list[str]:
    found = await client.get(INGRESSES, namespace, name)
    classes = await client.list(INGRESS_CLASSES)
    services = {name_of(item): item for item in (await client.list(SERVICES, namespace)).items}
    ready: Counter[str] = Counter()
    for piece in (await client.list(ENDPOINT_SLICES, namespace)).items:
        owner = labels_of(piece).get("kubernetes.io/service-name", "")
        ready[owner] += len(service_diagnosis.ready_addresses([piece]))
    return ingress_diagnosis.ingress_lines(found, classes.items, services, ready)


async def host_name(client: Client, namespace: str, name: str) -> list[str]:
    services, slices = await client.list(SERVICES), await client.list(ENDPOINT_SLICES)
    return service_diagnosis.name_lines(
        name, namespace, services.items, slices.items, CLUSTER_DOMAIN
    )


async def connection(client: Client, namespace: str, name: str, target: str) -> list[str]:
    """`target`: [NAMESPACE/]POD:PORT[/PROTOCOL], with or without a leading `pod/`."""
    place, port, protocol = parsed_target(target)
    other_namespace, _, other = place.rpartition("/")
    source = _view(await client.get(PODS, namespace, name))
    there = _view(await client.get(PODS, other_namespace or namespace, other))
    resource = by_kind("networking.k8s.io/v1", "NetworkPolicy")
    assert resource is not None
    policies = [compile_policy(each) for each in (await client.list(resource)).items]
    namespaces = {name_of(each): labels_of(each) for each in (await client.list(NAMESPACES)).items}
    found = judgements(Connection(source, there, protocol, port), policies, namespaces)
    title = f"pod {namespace}/{name} to pod {other_namespace or namespace}/{other}"
    allowed = all(each.allowed for each in found)
    verdict = "allowed" if allowed else "refused"
    return [f"{title}, {protocol} {port}: {verdict} by NetworkPolicies.", *map(_line, found)]


def parsed_target(target: str) -> tuple[str, int, str]:
    place, _, rest = target.removeprefix("pod/").rpartition(":")
    number, _, protocol = rest.partition("/")
    if not place or not number.isdigit():
        raise CannotStart(f"{target!r} is no target: write --to [NAMESPACE/]POD:PORT[/UDP]")
    return place, int(number), (protocol or "TCP").upper()


def _view(pod: Obj) -> PodView:
    found = pod_view(pod, (pod.get("spec") or {}).get("nodeName") or "")
    if found is None:
        raise CannotStart(
            f"pod {name_of(pod)} has no address of its own: it has not started, has ended, or "
            "is in the host's network"
        )
    return found


def _line(judgement: Judgement) -> str:
    word = _WORDS[judgement.direction]
    if not judgement.isolating:
        return f"  {judgement.direction}: no policy selects the pod, so everything may {word}"
    selecting = ", ".join(judgement.isolating)
    if judgement.allowing:
        return f"  {judgement.direction}: {', '.join(judgement.allowing)} lets it {word}"
    return f"  {judgement.direction}: {selecting} select(s) the pod, and none lets it {word}"

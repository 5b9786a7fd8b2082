"""The name server as the Service that every cluster has: kube-dns in kube-system.

Job: the objects that say where it is, made where they are missing, and put right.
Invariant: a Service kube-dns with a selector is somebody else's name server: it is left alone.
"""

from collections.abc import Sequence

from sampan.api.errors import ApiError, Conflict, NotFound
from sampan.api.objects import Obj
from sampan.api.resources import ENDPOINT_SLICES, SERVICES
from sampan.api.rules.endpoint_slices import SERVICE_NAME
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.log import get_logger

NAMESPACE, NAME = "kube-system", "kube-dns"
PORT = 53
RETRY_SECONDS = 1.0
log = get_logger(__name__)


def service(addresses: Sequence[str]) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {
                "k8s-app": NAME,
                "kubernetes.io/cluster-service": "true",
                "kubernetes.io/name": "CoreDNS",
            },
        },
        "spec": {
            "clusterIP": addresses[0],
            "clusterIPs": list(addresses),
            "ipFamilyPolicy": "SingleStack" if len(addresses) == 1 else "PreferDualStack",
            "ports": [
                {"name": "dns", "port": PORT, "protocol": "UDP"},
                {"name": "dns-tcp", "port": PORT, "protocol": "TCP"},
            ],
        },
    }


def endpoint_slice(node_name: str, endpoint: tuple[str, int]) -> Obj:
    address, port = endpoint
    more = "-ipv6" if ":" in address else ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{NAME}-{node_name}{more}",
            "namespace": NAMESPACE,
            "labels": {
                SERVICE_NAME: NAME,
                "endpointslice.kubernetes.io/managed-by": "sampan",
            },
        },
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [
            {"addresses": [address], "conditions": {"ready": True}, "nodeName": node_name}
        ],
        "ports": [
            {"name": "dns", "port": port, "protocol": "UDP"},
            {"name": "dns-tcp", "port": port, "protocol": "TCP"},
        ],
    }


async def publish(
    client: Client, addresses: Sequence[str], pieces: Sequence[Obj], clock: Clock
) -> None:
    """Returns when it is done; the API may be some time in coming."""
    while True:
        try:
            await _publish(client, addresses, pieces)
            return
        except ApiError as error:
            log.warning("Service of the name server not published, trying again", error=error)
        await clock.sleep(RETRY_SECONDS)


async def _publish(client: Client, addresses: Sequence[str], pieces: Sequence[Obj]) -> None:
    try:
        found = await client.get(SERVICES, NAMESPACE, NAME)
    except NotFound:
        found = await client.create(SERVICES, service(addresses), NAMESPACE)
    if found["spec"].get("selector"):
        return
    for piece in pieces:
        await _put_slice(client, piece)


async def _put_slice(client: Client, wanted: Obj) -> None:
    name = wanted["metadata"]["name"]
    try:
        present = await client.get(ENDPOINT_SLICES, NAMESPACE, name)
    except NotFound:
        await client.create(ENDPOINT_SLICES, wanted, NAMESPACE)
        return
    if any(present.get(field) != wanted[field] for field in ("endpoints", "ports")):
        try:
            await client.update(ENDPOINT_SLICES, {**wanted, "metadata": present["metadata"]})
        except Conflict:
            await client.delete(ENDPOINT_SLICES, NAMESPACE, name)
            await client.create(ENDPOINT_SLICES, wanted, NAMESPACE)

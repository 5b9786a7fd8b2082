"""PodResources API, v1: who on a node has which devices, processors, memory and claims.

Job: values of our own ↔ the protocol's messages; the serving side.

Importing this module brings the protocol's messages: only who is asked does.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from sampan.core.grpc.socket_server import Methods, Unary
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.plugins.gen import sampan_pod_resources_pb2 as messages
from sampan.plugins.pod_shares import (
    ClaimShare,
    ContainerShare,
    DeviceShare,
    MemoryShare,
    PodShare,
)

Message = Any
V1, V1ALPHA1 = "/v1.PodResourcesLister", "/v1alpha1.PodResourcesLister"


class Lister(Protocol):
    def asked(self, method: str, version: str) -> None:
        """Raises GrpcFailure for one who asks too often."""

    def failed(self, method: str, version: str) -> None: ...

    def pods(self) -> Iterable[PodShare]:
        """Those that run, or will."""

    def pod(self, namespace: str, name: str) -> PodShare | None: ...

    def allocatable(self) -> ContainerShare: ...


def lister_methods(lister: Lister) -> Methods:
    async def list_all(_request: Message) -> Message:
        lister.asked("list", "v1")
        return messages.ListPodResourcesResponse(
            pod_resources=[_pod(share, _container) for share in lister.pods()]
        )

    async def list_alpha(_request: Message) -> Message:
        """A part of the same form."""
        lister.asked("", "v1alpha1")
        return messages.ListPodResourcesResponse(
            pod_resources=[_pod(share, _devices_only) for share in lister.pods()]
        )

    async def allocatable(_request: Message) -> Message:
        lister.asked("get_allocatable", "v1")
        share = lister.allocatable()
        return messages.AllocatableResourcesResponse(
            devices=map(_device, share.devices),
            cpu_ids=share.cpus,
            memory=map(_memory, share.memory),
        )

    async def get(request: Message) -> Message:
        lister.asked("get", "v1")
        share = lister.pod(request.pod_namespace, request.pod_name)
        if share is None:
            lister.failed("get", "v1")
            raise GrpcFailure(
                f"pod {request.pod_name} in namespace {request.pod_namespace} not found",
                code="UNKNOWN",
            )
        return messages.GetPodResourcesResponse(pod_resources=_pod(share, _container))

    return {
        f"{V1}/List": Unary(messages.ListPodResourcesRequest, list_all),
        f"{V1}/GetAllocatableResources": Unary(messages.AllocatableResourcesRequest, allocatable),
        f"{V1}/Get": Unary(messages.GetPodResourcesRequest, get),
        f"{V1ALPHA1}/List": Unary(messages.ListPodResourcesRequest, list_alpha),
    }


def _pod(share: PodShare, container: Callable[[ContainerShare], Message]) -> Message:
    return messages.PodResources(
        name=share.name, namespace=share.namespace, containers=map(container, share.containers)
    )


def _container(share: ContainerShare) -> Message:
    return messages.ContainerResources(
        name=share.name,
        devices=map(_device, share.devices),
        cpu_ids=share.cpus,
        memory=map(_memory, share.memory),
        dynamic_resources=map(_claim, share.claims),
    )


def _devices_only(share: ContainerShare) -> Message:
    devices = [
        messages.ContainerDevices(resource_name=device.resource, device_ids=[device.id])
        for device in share.devices
    ]
    return messages.ContainerResources(name=share.name, devices=devices)


def _device(share: DeviceShare) -> Message:
    topology = None if share.node is None else _topology([share.node])
    return messages.ContainerDevices(
        resource_name=share.resource, device_ids=[share.id], topology=topology
    )


def _memory(share: MemoryShare) -> Message:
    return messages.ContainerMemory(
        memory_type=share.resource, size=share.size, topology=_topology(share.nodes)
    )


def _topology(nodes: Iterable[int]) -> Message:
    return messages.TopologyInfo(nodes=[messages.NUMANode(ID=node) for node in nodes])


def _claim(share: ClaimShare) -> Message:
    return messages.DynamicResource(
        claim_name=share.name,
        claim_namespace=share.namespace,
        claim_resources=[
            messages.ClaimResource(
                cdi_devices=[messages.CDIDevice(name=name) for name in device.cdi_devices],
                driver_name=device.driver,
                pool_name=device.pool,
                device_name=device.device,
                share_id=device.share,
            )
            for device in share.devices
        ],
    )

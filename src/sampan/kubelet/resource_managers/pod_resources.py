"""PodResources socket of a node: pod-resources/kubelet.sock.

Job: answer who has which devices, processors, memory and claims, out of what the managers know.
Invariant: nobody who never asks costs more than a file descriptor.
Owner: NodePlugins runs it.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.core.clock import Clock
from sampan.core.grpc.activated_server import ActivatedServer
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.metrics import Metrics
from sampan.kubelet.device_manager.device_manager import DeviceManager
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.numa import Mask, bits_of
from sampan.plugins.pod_shares import (
    ClaimShare,
    ContainerShare,
    DeviceShare,
    MemoryShare,
    PodShare,
)

if TYPE_CHECKING:
    from sampan.core.grpc.socket_server import Methods
    from sampan.kubelet.resource_managers.memory_state import Blocks

SOCKET = "pod-resources/kubelet.sock"
# As upstream: whoever asks more often than that has lost the thread.
MOST_PER_SECOND, MOST_AT_ONCE = 100.0, 10.0
Pods = Callable[[], Iterable[Obj]]
Claims = Callable[[Obj, Obj], list[ClaimShare]]  # of a pod's container

_METHODS = {"list": "List", "get_allocatable": "GetAllocatableResources", "get": "Get"}


class PodResources:
    def __init__(
        self,
        root_dir: str,
        devices: DeviceManager,
        managers: Managers,
        *,
        claims: Claims,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._path = f"{root_dir}/{SOCKET}"
        self._devices, self._managers, self._claims = devices, managers, claims
        self.active_pods: Pods = lambda: ()
        self._clock = clock
        self._tokens, self._counted_at = 0.0, float("-inf")
        self._total = metrics.counter(
            "kubelet_pod_resources_endpoint_requests_total",
            "Cumulative number of requests to the PodResource endpoint. Broken down by server api "
            "version.",
            ("server_api_version",),
        )
        self._requests, self._errors = (
            {
                method: metrics.counter(
                    f"kubelet_pod_resources_endpoint_{what}_{method}",
                    f"Number of requests to the PodResource {name} endpoint{how}. Broken down by "
                    "server api version.",
                    ("server_api_version",),
                )
                for method, name in _METHODS.items()
            }
            for what, how in (("requests", ""), ("errors", " which returned error"))
        )

    async def run(self) -> None:
        """Until cancelled."""
        directory = os.path.dirname(self._path)
        await asyncio.to_thread(os.makedirs, directory, 0o750, exist_ok=True)
        server = ActivatedServer(self._path, self._methods, mode=0o660)
        await server.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await server.stop()

    def _methods(self) -> "Methods":
        methods: Methods = import_module("sampan.plugins.pod_resources").lister_methods(self)
        return methods

    # What the protocol asks.

    def asked(self, method: str, version: str) -> None:
        """Raises GrpcFailure."""
        now = self._clock.monotonic()
        filled = self._tokens + (now - self._counted_at) * MOST_PER_SECOND
        self._tokens, self._counted_at = min(filled, MOST_AT_ONCE), now
        if self._tokens < 1:
            raise GrpcFailure("rejected by rate limit", code="RESOURCE_EXHAUSTED")
        self._tokens -= 1
        self._total.add(version)
        if method:
            self._requests[method].add(version)

    def failed(self, method: str, version: str) -> None:
        self._errors[method].add(version)

    def pods(self) -> Iterator[PodShare]:
        return (self._share(pod) for pod in self.active_pods())

    def pod(self, namespace: str, name: str) -> PodShare | None:
        for pod in self.active_pods():
            if (namespace_of(pod), name_of(pod)) == (namespace, name):
                return self._share(pod)
        return None

    def allocatable(self) -> ContainerShare:
        cpu, memory = self._managers.cpu, self._managers.memory
        return ContainerShare(
            devices=[
                share
                for resource, found in self._devices.allocatable().items()
                for device in found.values()
                for share in _devices(resource, device.id, device.numa)
            ],
            cpus=sorted(cpu.allocatable()) if cpu is not None else (),
            memory=_memory(memory.allocatable()) if memory is not None else (),
        )

    def _share(self, pod: Obj) -> PodShare:
        staying = [item for item in init_containers(pod) if is_sidecar(item)]
        shares = [self._container(pod, item) for item in (*staying, *containers(pod))]
        return PodShare(name_of(pod), namespace_of(pod), shares)

    def _container(self, pod: Obj, container: Obj) -> ContainerShare:
        uid, name = uid_of(pod), container["name"]
        cpu, memory = self._managers.cpu, self._managers.memory
        return ContainerShare(
            name,
            devices=[
                share
                for resource, allocation in self._devices.allocated(uid, name).items()
                for device, numa in allocation.devices.items()
                for share in _devices(resource, device, numa)
            ],
            cpus=sorted(cpu.exclusive(uid, name)) if cpu is not None else (),
            memory=_memory(memory.blocks_of(uid, name)) if memory is not None else (),
            claims=self._claims(pod, container),
        )


def _devices(resource: str, device: str, numa: Mask) -> Iterator[DeviceShare]:
    """One for each NUMA node that it is on, as upstream lists them."""
    if not numa:
        yield DeviceShare(resource, device)
    for node in bits_of(numa):
        yield DeviceShare(resource, device, node)


def _memory(blocks: "Blocks") -> list[MemoryShare]:
    return [MemoryShare(block.resource, block.size, block.nodes) for block in blocks]

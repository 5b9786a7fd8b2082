"""Pods' interfaces for containers that no CNI-speaking runtime makes.

Job: the kubelet's SandboxNetwork by the node's own PodInterfaces.
"""

from sampan.kubelet.container_spec.bandwidth import EGRESS, INGRESS, rate_of
from sampan.kubelet.contracts.runtime import RuntimeFailure, SandboxSpec
from sampan.network.nftables.nft import NftError
from sampan.network.pods import plugin_protocol
from sampan.network.pods.addresses import AddressesExhausted
from sampan.network.pods.bandwidth import Bandwidth, Limit
from sampan.network.pods.plugin_protocol import PluginError
from sampan.network.pods.pod_interfaces import PodInterfaces


class BridgedSandboxes:
    def __init__(self, interfaces: PodInterfaces) -> None:
        self._interfaces = interfaces

    async def attach(self, sandbox_id: str, namespace: str, spec: SandboxSpec) -> tuple[str, ...]:
        wanted = tuple(
            plugin_protocol.PortMapping(
                port.host_port, port.container_port, port.protocol, port.host_ip
            )
            for port in spec.port_mappings
            if port.host_port
        )
        ingress, egress = (Limit(rate_of(spec.annotations, name)) for name in (INGRESS, EGRESS))
        try:
            return await self._interfaces.attach(
                sandbox_id, namespace, wanted, Bandwidth(ingress, egress)
            )
        except (PluginError, AddressesExhausted, NftError, OSError) as error:
            raise RuntimeFailure(f"the pod's network cannot be set up: {error}") from error

    async def detach(self, sandbox_id: str) -> None:
        try:
            await self._interfaces.detach(sandbox_id)
        except (PluginError, NftError, OSError) as error:
            raise RuntimeFailure(f"the pod's network cannot be removed: {error}") from error

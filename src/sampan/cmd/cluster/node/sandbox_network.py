"""Pods' interfaces for containers that no CNI-speaking runtime makes.

Job: the kubelet's SandboxNetwork by the node's own PodInterfaces, or by the plugins of the user.
"""

import asyncio
from typing import Any

from sampan.kubelet.container_spec.bandwidth import EGRESS, INGRESS, rate_of
from sampan.kubelet.contracts.runtime import RuntimeFailure, SandboxSpec
from sampan.network.nftables.nft import NftError
from sampan.network.plugins.plugin_network import PluginNetwork, PodOfPlugins
from sampan.network.plugins.plugin_program import PluginFailed
from sampan.network.pods import plugin_protocol
from sampan.network.pods.addresses import AddressesExhausted
from sampan.network.pods.bandwidth import Bandwidth, Limit
from sampan.network.pods.interfaces import raise_loopback
from sampan.network.pods.plugin_protocol import PluginError
from sampan.network.pods.pod_interfaces import PodInterfaces

_UNBOUNDED = (1 << 32) - 1  # of a burst: as containerd names it


class BridgedSandboxes:
    def __init__(self, interfaces: PodInterfaces) -> None:
        self._interfaces = interfaces

    async def attach(self, sandbox_id: str, namespace: str, spec: SandboxSpec) -> tuple[str, ...]:
        wanted = tuple(
            plugin_protocol.PortMapping(
                port.host_port,
                port.container_port,
                port.protocol,
                plugin_protocol.any_or(port.host_ip),
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

    async def detach(self, sandbox_id: str, namespace: str) -> None:
        try:
            await self._interfaces.detach(sandbox_id)
        except (PluginError, NftError, OSError) as error:
            raise RuntimeFailure(f"the pod's network cannot be removed: {error}") from error

    def why_not_ready(self) -> str:
        return ""


class PluggedSandboxes:
    """By CNI plugins that the user configures, with containerd's messages."""

    def __init__(self, network: PluginNetwork) -> None:
        self._network = network

    async def attach(self, sandbox_id: str, namespace: str, spec: SandboxSpec) -> tuple[str, ...]:
        pod = PodOfPlugins(spec.namespace, spec.name, spec.uid, _capabilities(spec))
        try:
            await asyncio.to_thread(raise_loopback, namespace)
            return await self._network.attach(sandbox_id, namespace, pod)
        except (PluginFailed, OSError) as error:
            text = f'failed to setup network for sandbox "{sandbox_id}": {error}'
            raise RuntimeFailure(text) from error

    async def detach(self, sandbox_id: str, namespace: str) -> None:
        try:
            await self._network.detach(sandbox_id, namespace)
        except (PluginFailed, OSError) as error:
            text = f'failed to destroy network for sandbox "{sandbox_id}": {error}'
            raise RuntimeFailure(text) from error

    def why_not_ready(self) -> str:
        return self._network.why_not_ready()


def _capabilities(spec: SandboxSpec) -> dict[str, Any]:
    """What plugins may ask to be told, under containerd's names."""
    found: dict[str, Any] = {
        "dns": {
            "servers": list(spec.dns_servers),
            "searches": list(spec.dns_searches),
            "options": list(spec.dns_options),
        },
        "io.kubernetes.cri.pod-annotations": dict(spec.annotations),
    }
    if spec.cgroup_parent:
        found["cgroupPath"] = spec.cgroup_parent
    ports = [
        {
            "hostPort": port.host_port,
            "containerPort": port.container_port,
            "protocol": port.protocol.lower(),
            "hostIP": port.host_ip,
        }
        for port in spec.port_mappings
        if port.host_port
    ]
    if ports:
        found["portMappings"] = ports
    rates = {"ingress": rate_of(spec.annotations, INGRESS)}
    rates["egress"] = rate_of(spec.annotations, EGRESS)
    limits = {
        f"{way}{what}": figure
        for way, rate in rates.items()
        if rate
        for what, figure in (("Rate", rate), ("Burst", _UNBOUNDED))
    }
    if limits:
        found["bandwidth"] = limits
    return found

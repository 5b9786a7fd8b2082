"""The network of a real node's pods: ours, or a CNI plugin's that the user configures.

Job: set it up before the runtime starts; the parts that keep it then.
Invariant: nothing of ours is in the network of a runtime that runs already, nor in a plugin's.
"""

import asyncio
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.cluster import machine
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node.network import NodeNetwork, NodeNetworkSettings
from sampan.cmd.cluster.nodes import NodeIdentity
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges, dns_address
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CLUSTER_DOMAIN, UpSettings
from sampan.core.clock import Clock

if TYPE_CHECKING:
    from sampan.network.bridge import PodNetwork
    from sampan.network.pods.pod_interfaces import PodInterfaces

PluginPlaces = tuple[Path, Path]  # of the CNI configurations, and of the plugins' programs


class NodePodNetwork:
    def __init__(
        self,
        settings: UpSettings,
        data: DataDir,
        identity: NodeIdentity,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self._settings, self._data, self._identity = settings, data, identity
        self._progress, self._clock = progress, clock
        self.ranges = chosen_ranges(settings.ranges, {})
        self.pod_cidr = ""  # to be set before `set_up` where the cluster gave one
        self.network: NodeNetwork | None = None  # where the pods' network is ours
        self.interfaces: PodInterfaces | None = None  # where their interfaces are, too

    @property
    def serves_names(self) -> bool:
        """The pods' network is ours, and there is an API to know Services from."""
        return self.network is not None and not self._settings.node.standalone

    @property
    def dns_addresses(self) -> tuple[str, ...]:
        return (dns_address(self.ranges),) if self.serves_names else ()

    async def gateway(self) -> str:
        from sampan.network import bridge

        if self._settings.cri_socket or self._settings.network == "none":
            return ""
        try:
            network = await asyncio.to_thread(
                bridge.reserve, self._data.root, cluster_cidr=self.ranges.cluster
            )
        except bridge.NetworkError as error:
            raise CannotStart(str(error)) from error
        return network.gateway

    async def set_up(self) -> PluginPlaces:
        """For a containerd of our own."""
        from sampan.network import bridge, cni, cni_configuration

        if self._settings.network == "none":
            return self._foreign()
        try:
            # Found or made in a thread: it runs nft, and the API server starts meanwhile.
            network = await asyncio.to_thread(
                cni.set_up, self._data.root, (self.ranges.service,), (self.ranges.cluster,),
                self.pod_cidr,
                reference=self._settings.cni == "reference",
            )  # fmt: skip
        except bridge.NetworkError as error:
            raise CannotStart(str(error)) from error
        self.pod_cidr = network.subnet
        await self._start_interfaces(network)
        self._warn_of_overlaps()
        self.network = NodeNetwork(self._network_settings(network), self._clock, self.interfaces)
        return cni_configuration.conf_directory(self._data.root), cni.plugins_of(self._data.root)

    def _foreign(self) -> PluginPlaces:
        """Whatever CNI plugin the user configures, before or after: the node is Ready then."""
        from sampan.network import cni_configuration

        place = cni_configuration.FOREIGN_CONFIGURATIONS
        self._progress.warn(
            f"--network none: the node is Ready when {place} has a CNI configuration; Services, "
            "names and policies are left to what you install"
        )
        return Path(place), cni_configuration.foreign_plugins()

    async def _start_interfaces(self, network: "PodNetwork") -> None:
        from sampan.network import cni, netlink
        from sampan.network.nftables.nft import NftError
        from sampan.network.overlay.routes import pod_mtu
        from sampan.network.pods.pod_interfaces import PodInterfaces

        if not cni.uses_own_plugin(self._data.root):
            return
        uplink = netlink.mtu_towards(self._identity.address)
        mtu = pod_mtu(uplink, self._settings.network)
        interfaces = PodInterfaces(cni.interface_settings(self._data.root, network, mtu))
        try:
            await interfaces.start()
        except (OSError, NftError) as error:
            raise CannotStart(f"pods' network interfaces cannot be made: {error}") from error
        self.interfaces = interfaces

    def _warn_of_overlaps(self) -> None:
        """A machine in the service range cannot be reached from here any more."""
        from sampan.network import netlink

        services = ipaddress.ip_network(self.ranges.service)
        for text in netlink.own_networks():
            if services.overlaps(ipaddress.ip_network(text)):
                self._progress.warn(
                    f"this machine's network {text} overlaps the Services' {services}: "
                    "what both have is taken for Services"
                )

    def _network_settings(self, network: "PodNetwork") -> NodeNetworkSettings:
        from sampan.network import cni, netlink
        from sampan.network.overlay.overlay import OverlaySettings

        return NodeNetworkSettings(
            self._identity.name,
            cni.proxy_place(network, (self.ranges.service,), (self.ranges.cluster,)),
            network.gateway,
            CLUSTER_DOMAIN,
            dns_address(self.ranges),
            machine.host_dns().servers,
            stub_domains=self._settings.stub_domains,
            overlay=OverlaySettings(
                self._identity.name, self._identity.address, network.subnet, network.bridge,
                str(self._data.root), self._settings.network,
                netlink.mtu_towards(self._identity.address),
            ),
        )  # fmt: skip

"""The network of a real node's pods: ours, or a CNI plugin's that the user configures.

Job: set it up before the runtime starts; the parts that keep it then.
Invariant: nothing of ours is in the network of a runtime that runs already; with a plugin of the
    user's, Services and names are ours unless he says otherwise, and no CNI configuration is.
"""

import asyncio
import ipaddress
import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.cluster import machine
from sampan.cmd.cluster.node.network import NodeNetwork, NodeNetworkSettings
from sampan.cmd.cluster.nodes import NodeSetup
from sampan.cmd.cluster.ranges import chosen_ranges, dns_addresses
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CLUSTER_DOMAIN

if TYPE_CHECKING:
    from sampan.network.bridge import PodNetwork
    from sampan.network.nftables.queries import WrittenRules
    from sampan.network.pods.pod_interfaces import PodInterfaces
    from sampan.network.services.ruleset import ProxyPlace

HEALTHZ_PORT = 10256
PluginPlaces = tuple[Path, Path]  # of the CNI configurations, and of the plugins' programs


class NodePodNetwork:
    def __init__(self, setup: NodeSetup) -> None:
        self._settings, self._data, self._identity = setup.settings, setup.data, setup.identity
        self._progress, self._clock = setup.progress, setup.clock
        self.ranges = chosen_ranges(setup.settings.ranges, {})
        self.pod_cidrs: tuple[str, ...] = ()  # to be set before `set_up` where there are some
        self.network: NodeNetwork | None = None  # where Services and names are ours
        self.interfaces: PodInterfaces | None = None  # where their interfaces are, too

    @property
    def serves_names(self) -> bool:
        """Services are ours, and there is an API to know them from."""
        return self.network is not None and not self._settings.node.standalone

    @property
    def dns_addresses(self) -> tuple[str, ...]:
        return dns_addresses(self.ranges) if self.serves_names else ()

    def _check_ipv6(self) -> None:
        from sampan.network import forwarding

        lacks = forwarding.why_no_ipv6() if "ipv6" in self.ranges.families else ""
        if lacks:
            raise CannotStart(f"{lacks}: --ip-families ipv4 does without")

    async def gateways(self) -> tuple[str, ...]:
        from sampan.network import bridge

        self._check_ipv6()
        cidrs, foreign = self.ranges.cluster, self._settings.network == "none"
        if self._settings.cri_socket or (foreign and not self._settings.plugins.service_proxy):
            return ()
        self._refuse_another_network()
        if foreign:
            cidrs = bridge.podless_ranges(self.ranges.service)
        try:
            network = await asyncio.to_thread(bridge.reserve, self._data.root, cluster_cidrs=cidrs)
        except bridge.NetworkError as error:
            raise CannotStart(str(error)) from error
        return network.gateways

    async def set_up(self) -> PluginPlaces:
        """For a containerd of our own."""
        from sampan.network import bridge, cni, cni_configuration

        self._check_ipv6()
        self._refuse_another_network()
        if self._settings.network == "none":
            return await self._set_up_for_a_plugin()
        try:
            # Found or made in a thread: it runs nft, and the API server starts meanwhile.
            network, written = await asyncio.to_thread(self._set_up_own)
        except bridge.NetworkError as error:
            raise CannotStart(str(error)) from error
        self.pod_cidrs = network.subnets
        await self._start_interfaces(network, written)
        self._warn_of_overlaps()
        self._warn_of_firewalls(network)
        settings = replace(self._network_settings(network), written=written)
        self.network = NodeNetwork(settings, self._clock, self.interfaces)
        return cni_configuration.conf_directory(self._data.root), cni.plugins_of(self._data.root)

    def _set_up_own(self) -> "tuple[PodNetwork, WrittenRules | None]":
        from sampan.network import cni
        from sampan.network.nftables.queries import WrittenRules

        network = cni.set_up(
            self._data.root, self.ranges.service, self.ranges.cluster, self.pod_cidrs,
            reference=self._settings.cni == "reference",
        )  # fmt: skip
        return network, WrittenRules.now()

    def _refuse_another_network(self) -> None:
        """A cluster keeps whose network its pods are on."""
        from sampan.network import bridge

        foreign, plugins = self._settings.network == "none", self._settings.plugins
        if not foreign and (plugins.conf_dir or plugins.bin_dir or not plugins.service_proxy):
            raise CannotStart(
                "--cni-conf-dir, --cni-bin-dir and --service-proxy are for --network none"
            )
        known = bridge.record(self._data.root)
        if known is not None and bridge.has_pods(known) is foreign:
            before = "sampan's own network" if foreign else "the network of a CNI plugin of yours"
            raise CannotStart(
                f"--network {self._settings.network}: pods of this data directory have {before}, "
                "and keep it; a new data directory can have another"
            )

    async def _set_up_for_a_plugin(self) -> PluginPlaces:
        """Whatever CNI plugin the user configures, before or after: the node is Ready then."""
        from sampan.network import bridge, cni, cni_configuration

        plugins = self._settings.plugins
        conf_dir = Path(plugins.conf_dir or cni_configuration.FOREIGN_CONFIGURATIONS)
        left = "NetworkPolicies" if plugins.service_proxy else "Services, names and NetworkPolicies"
        self._progress.warn(
            f"--network none: the node is Ready when {conf_dir} has a CNI configuration; {left} "
            "are left to what you install"
        )
        if plugins.service_proxy:
            services, node = self.ranges.service, self._identity.address
            try:
                network = await asyncio.to_thread(cni.set_up_podless, self._data.root, services)
                place = cni.podless_place(network, services, self.ranges.cluster, node)
                await asyncio.to_thread(cni.load_rules, place)
            except bridge.NetworkError as error:
                raise CannotStart(str(error)) from error
            self._warn_of_overlaps()
            settings = self._service_settings(place)
            self.network = NodeNetwork(replace(settings, policies=False), self._clock)
        return conf_dir, Path(plugins.bin_dir or cni_configuration.foreign_plugins())

    async def _start_interfaces(
        self, network: "PodNetwork", written: "WrittenRules | None"
    ) -> None:
        from sampan.network import cni, netlink
        from sampan.network.nftables.nft import NftError
        from sampan.network.overlay.routes import pod_mtu
        from sampan.network.pods.pod_interfaces import PodInterfaces

        if not cni.uses_own_plugin(self._data.root):
            return
        uplink = netlink.mtu_towards(self._identity.address)
        mtu = pod_mtu(uplink, self._settings.network, self._identity.address)
        interfaces = PodInterfaces(cni.interface_settings(self._data.root, network, mtu))
        try:
            await interfaces.start(written)
        except (OSError, NftError) as error:
            raise CannotStart(f"pods' network interfaces cannot be made: {error}") from error
        self.interfaces = interfaces

    def _warn_of_overlaps(self) -> None:
        """A machine in the service range cannot be reached from here any more."""
        from sampan.network import netlink

        for services, text in itertools.product(self.ranges.service, netlink.own_networks()):
            if ipaddress.ip_network(services).overlaps(ipaddress.ip_network(text)):
                self._progress.warn(
                    f"this machine's network {text} overlaps the Services' {services}: "
                    "what both have is taken for Services"
                )

    def _warn_of_firewalls(self, network: "PodNetwork") -> None:
        from sampan.network import cni
        from sampan.network.nftables.other_firewalls import find_dropping_chains

        for chain in find_dropping_chains(cni.nft_table(network)):
            self._progress.warn(
                f"another firewall (nftables chain {chain}) drops what none of its rules accepts: "
                f"pods reach others if it accepts what comes from and goes to {network.bridge}"
            )

    def _service_settings(self, place: "ProxyPlace") -> NodeNetworkSettings:
        return NodeNetworkSettings(
            self._identity.name,
            place,
            CLUSTER_DOMAIN,
            dns_addresses(self.ranges),
            machine.host_dns(servers=self._settings.name_servers).servers,
            stub_domains=self._settings.stub_domains,
            # In a user namespace of our own nobody outside could ask.
            health=None if self._settings.rootless else (self._identity.address, HEALTHZ_PORT),
        )

    def _network_settings(self, network: "PodNetwork") -> NodeNetworkSettings:
        from sampan.network import cni, netlink
        from sampan.network.overlay.overlay import OverlaySettings

        place = cni.proxy_place(network, self.ranges.service, self.ranges.cluster)
        overlay = OverlaySettings(
            self._identity.name, self._identity.addresses, network.subnets, network.bridge,
            str(self._data.root), self._settings.network,
            netlink.mtu_towards(self._identity.address), place.table,
        )  # fmt: skip
        return replace(self._service_settings(place), overlay=overlay)

"""The pod network of one data directory: bridge, rules, CNI configuration and masquerading.

Job: set all of it up, and take everything away again.
Invariant: whoever makes pods' interfaces, there is one configuration, and it says who.
"""

import contextlib
import functools
import ipaddress
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from sampan.core.log import get_logger
from sampan.network import bridge, cni_configuration, forwarding, iptables
from sampan.network.bridge import NetworkError, PodNetwork, ipam_directory
from sampan.network.cni_configuration import conf_directory, plugin_directory, shapes_bandwidth
from sampan.network.netlink import add_route, alias_of, uplinks
from sampan.network.nftables import nft
from sampan.network.overlay import overlay
from sampan.network.pods import host_ports, pod_interfaces, veth_guard
from sampan.network.pods.interfaces import hardware_of
from sampan.network.pods.pod_interfaces import PodInterfaces, PodInterfaceSettings
from sampan.network.policies import ruleset as policies
from sampan.network.services import ruleset
from sampan.network.services.ruleset import ProxyPlace

log = get_logger(__name__)


def nft_table(network: PodNetwork) -> str:
    return f"{network.bridge}-pods"


def podless_place(
    network: PodNetwork, service_cidrs: Sequence[str], cluster_cidrs: Sequence[str], node: str
) -> ProxyPlace:
    """Where Services' rules are when pods' network is a plugin's. `node` is its address."""
    return ProxyPlace(
        table=nft_table(network),
        bridge=network.bridge,
        cluster_cidrs=tuple(cluster_cidrs),
        service_cidrs=tuple(service_cidrs),
        other_bridges=f"{bridge.BRIDGES}*",
        gateways=network.gateways,
        uplinks=uplinks(node),
    )


def proxy_place(
    network: PodNetwork, service_cidrs: Sequence[str], cluster_cidrs: Sequence[str] = ()
) -> ProxyPlace:
    """Where this network's rules are: one table for pods, Services and all else of the cluster."""
    return ProxyPlace(
        table=nft_table(network),
        bridge=network.bridge,
        cluster_cidrs=_all_pods(network, cluster_cidrs),
        service_cidrs=tuple(service_cidrs),
        other_bridges=f"{bridge.BRIDGES}*",
        pod_cidrs=network.subnets,
        gateways=network.gateways,
    )


def _all_pods(network: PodNetwork, cluster_cidrs: Sequence[str]) -> tuple[str, ...]:
    """The cluster's ranges, and this node's own that are in none of them."""
    own = [
        each
        for each in network.subnets
        if not any(_is_inside(each, cidr) for cidr in cluster_cidrs)
    ]
    return (*cluster_cidrs, *own)


def _is_inside(subnet: str, cidr: str) -> bool:
    return bridge.family_of(subnet) == bridge.family_of(cidr) and (
        ipaddress.ip_network(subnet).network_address in ipaddress.ip_network(cidr)
    )


def interfaces_directory(data_dir: Path) -> Path:
    """Where our own plugin keeps its things."""
    return data_dir / "pod-network"


def makes_interfaces(*, reference: bool = False) -> bool:
    """Can anybody make pods' interfaces here? `reference`: by the reference plugins only."""
    own = not reference and pod_interfaces.is_possible()
    return own or plugin_directory() is not None


def uses_own_plugin(data_dir: Path) -> bool:
    """As `set_up` chose it."""
    return pod_interfaces.plugin_directory(interfaces_directory(data_dir)).is_dir()


def plugins_of(data_dir: Path) -> Path:
    """The directory that the container runtime finds its plugins in."""
    if uses_own_plugin(data_dir):
        return pod_interfaces.plugin_directory(interfaces_directory(data_dir))
    found = plugin_directory()
    assert found is not None, "checked when the network was set up"
    return found


def interface_settings(data_dir: Path, network: PodNetwork, mtu: int = 0) -> PodInterfaceSettings:
    return PodInterfaceSettings(
        interfaces_directory(data_dir), network.bridge, nft_table(network), network.subnets, mtu
    )


def set_up(
    data_dir: Path,
    service_cidrs: Sequence[str] = (),
    cluster_cidrs: Sequence[str] = (),
    subnets: Sequence[str] = (),
    *,
    reference: bool = False,
) -> PodNetwork:
    """The network of this data directory: as recorded, or chosen now. Takes some milliseconds.

    What is addressed to `service_cidrs` does not leave the machine from now on. `subnets` is what
    the cluster gave this node, if it gave any. `reference`: the reference plugins make interfaces.
    """
    network = bridge.reserve(data_dir, subnets, cluster_cidrs or (bridge.DEFAULT_RANGE,))
    for cidr in service_cidrs:
        _route_to_bridge(network, cidr)
    by_plugin = not iptables.masquerade(network, by_nft=True)
    own = not reference and pod_interfaces.is_possible()
    load_rules(proxy_place(network, service_cidrs, cluster_cidrs), pods=True, ports=own)
    if own:
        pod_interfaces.install(interfaces_directory(data_dir))
        plain = special = cni_configuration.own_conflist()
    else:
        if plugin_directory() is None:
            raise NetworkError("the CNI plugins (apt package containernetworking-plugins) are "
                               "missing, and sampan's own needs nft")  # fmt: skip
        pod_interfaces.remove_all(interfaces_directory(data_dir))
        make = functools.partial(
            cni_configuration.conflist,
            network,
            str(ipam_directory(data_dir)),
            masquerade=by_plugin,
        )
        plain, special = make(), make(host_ports=True, bandwidth=shapes_bandwidth())
    cni_configuration.write_configurations(conf_directory(data_dir), plain, special)
    _let_forward(network)
    return network


def set_up_podless(data_dir: Path, service_cidrs: Sequence[str]) -> PodNetwork:
    """Where pods are on another plugin's network: a bridge that nobody is on, whose address is for
    the name server and the API, and to which the service range leads. Nothing of CNI is written."""
    network = bridge.reserve(data_dir, cluster_cidrs=bridge.podless_ranges(service_cidrs))
    for cidr in service_cidrs:
        _route_to_bridge(network, cidr)
    _let_forward(network)
    return network


def _let_forward(network: PodNetwork) -> None:
    for family in network.families:
        forwarding.switch_on(family)


@contextlib.asynccontextmanager
async def answered_plugin(data_dir: Path) -> AsyncIterator[None]:
    """Where pods' interfaces are ours, somebody answers the runtime's calls meanwhile."""
    network = bridge.record(data_dir)
    if network is None or not uses_own_plugin(data_dir):
        yield
        return
    interfaces = PodInterfaces(interface_settings(data_dir, network))
    try:
        await interfaces.start()
    except (OSError, nft.NftError) as error:
        log.warning("pod interfaces removed without the runtime", error=error)
    try:
        yield
    finally:
        await interfaces.stop()


def tear_down(data_dir: Path) -> None:
    """Remove bridge, rules, addresses and files; what is already gone is no error."""
    network = bridge.record(data_dir)
    pod_interfaces.remove_all(interfaces_directory(data_dir))
    if network is not None and alias_of(network.bridge) == bridge.owner_mark(data_dir):
        iptables.remove_rules(network)
        for family in ("ip", "ip6", veth_guard.FAMILY):
            with contextlib.suppress(nft.NftError):
                nft.run(f"delete table {family} {nft_table(network)}\n")
        overlay.tear_down(data_dir, network.bridge)
        bridge.delete(network.bridge)
    shutil.rmtree(conf_directory(data_dir), ignore_errors=True)
    shutil.rmtree(ipam_directory(data_dir), ignore_errors=True)
    bridge.forget(data_dir)


def _route_to_bridge(network: PodNetwork, cidr: str) -> None:
    """The service range leads to the pods' bridge, where nobody answers for what no rule has sent
    on. So nothing of it leaves by the default route, and there is a way to it where there is no
    such route. Where another sampan has taken the range already, it is for the host's own use."""
    try:
        add_route(cidr, network.bridge)
    except FileExistsError:
        log.info("another cluster on this machine has the service range", cidr=cidr)
    except OSError as error:
        log.warning("route for the service CIDR was not set", cidr=cidr, error=error)


def load_rules(place: ProxyPlace, *, pods: bool = False, ports: bool = False) -> None:
    """Of everybody who has any in the node's tables, in one transaction where nothing is in the
    way. `pods`: their network is ours; `ports`: so are their host ports. Raises NetworkError."""
    scripts = {}
    for family in place.families:
        script = ruleset.skeleton(family, place)
        script += host_ports.skeleton(family, place.table, place.bridge) if ports else ""
        scripts[family] = script + (policies.skeleton(family, place.table) if pods else "")
    guards = {}
    if ports:
        hardware = hardware_of(place.bridge)
        guards = {veth_guard.FAMILY: veth_guard.skeleton(place.table, hardware)}
    with contextlib.suppress(nft.NftError):
        nft.write_together(place.table, {**scripts, **guards})
        return
    _load_one_by_one(place.table, scripts, guards)


def _load_one_by_one(table: str, scripts: Mapping[str, str], guards: Mapping[str, str]) -> None:
    """What is there of another version goes first; a kernel without rules of bridges does without
    the guards. Raises NetworkError."""
    try:
        for family, script in scripts.items():
            nft.load(family, table, script)
    except nft.NftError as error:
        raise NetworkError(
            f"{error}; a real node needs nft 1.0 and Linux 5.13, or newer"
        ) from error
    try:
        for family, script in guards.items():
            nft.load(family, table, script)
    except nft.NftError as error:
        veth_guard.tell_unguarded(error)

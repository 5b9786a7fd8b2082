"""The pod network of one data directory: a bridge of its own, a free subnet, masquerading.

Job: choose bridge and subnet so that several sampans and the machine's other networks do not
    clash, write the CNI configuration, and take everything away again.
Invariant: a bridge belongs to one data directory; its alias says to which.
Invariant: pods are masqueraded by one rule per sampan, never by one per pod (that costs 15 ms at
    each start of a pod and 45 ms at each end).
"""

import errno
import fcntl
import functools
import hashlib
import ipaddress
import itertools
import json
import shlex
import shutil
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.network.netlink import add_route, alias_of, set_alias
from sampan.network.nftables import nft
from sampan.network.overlay import overlay
from sampan.network.pods import pod_interfaces
from sampan.network.pods.plugin_protocol import OWN
from sampan.network.pods.pod_interfaces import PodInterfaces, PodInterfaceSettings
from sampan.network.services import ruleset
from sampan.network.services.ruleset import ProxyPlace

log = get_logger(__name__)

PLUGIN_DIRECTORIES = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
FOREIGN_CONFIGURATIONS, _FOREIGN_PLUGINS = "/etc/cni/net.d", "/opt/cni/bin"
# The directory of the configuration for pods with host ports, below the other one.
HOST_PORTS = "host-ports"
PLUGINS = ("bridge", "host-local", "loopback", "portmap")

_NAME = "sampan"
_DEFAULT_RANGE = "10.244.0.0/16"
_MORE_RANGES = ("10.200.0.0/16", "10.210.0.0/16", "10.220.0.0/16")  # where that is taken
_NODE_BITS = 24
_MOST_CANDIDATES = 1024
_COMMAND_SECONDS = 10.0
_PORTMAP_DNAT = "CNI-HOSTPORT-DNAT"
_PORTMAP_CHAINS = (_PORTMAP_DNAT, "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK")

# linux/sockios.h
_SIOCBRADDBR, _SIOCBRDELBR = 0x89A0, 0x89A1
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_SIOCSIFADDR, _SIOCSIFNETMASK = 0x8916, 0x891C
_SIOCGIFHWADDR, _SIOCSIFHWADDR = 0x8927, 0x8924
_IFF_UP = 0x1


class NetworkError(Exception):
    """The pod network cannot be had; the message says why."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    bridge: str
    subnet: str  # 10.244.0.0/24

    @property
    def gateway(self) -> str:
        return str(ipaddress.ip_network(self.subnet)[1])


# ---- decisions


def candidates(cluster_cidr: str = _DEFAULT_RANGE) -> Iterator[PodNetwork]:
    """In the order in which they are tried. The number is in the bridge's name and in the subnet,
    so that two sampans that start at once cannot take the same subnet with different bridges."""
    more = _MORE_RANGES if cluster_cidr == _DEFAULT_RANGE else ()
    ranges = (ipaddress.ip_network(each) for each in (cluster_cidr, *more))
    subnets = (subnet for each in ranges for subnet in each.subnets(new_prefix=_NODE_BITS))
    for number, subnet in enumerate(itertools.islice(subnets, _MOST_CANDIDATES)):
        yield PodNetwork(f"{_NAME}{number}", str(subnet))


def is_free(network: PodNetwork, routes: Iterable[ipaddress.IPv4Network]) -> bool:
    subnet = ipaddress.IPv4Network(network.subnet)
    return not any(route.prefixlen > 0 and route.overlaps(subnet) for route in routes)


def parse_routes(table: str) -> list[ipaddress.IPv4Network]:
    """/proc/net/route: addresses and masks are hexadecimal, in the machine's byte order."""
    routes = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7:
            address = socket.inet_ntoa(struct.pack("=I", int(fields[1], 16)))
            mask = socket.inet_ntoa(struct.pack("=I", int(fields[7], 16)))
            routes.append(ipaddress.IPv4Network(f"{address}/{mask}", strict=False))
    return routes


def own_conflist(*, bandwidth: bool = False) -> Obj:
    """Of our own plugin: it asks the node agent for everything."""
    plugins: list[Obj] = [{"type": OWN, "capabilities": {"portMappings": True}}]
    if bandwidth:
        plugins.append({"type": "bandwidth", "capabilities": {"bandwidth": True}})
    return {"cniVersion": "1.0.0", "name": _NAME, "plugins": plugins}


def conflist(
    network: PodNetwork,
    ipam_dir: str,
    *,
    masquerade: bool,
    host_ports: bool = False,
    bandwidth: bool = False,
) -> Obj:
    """`masquerade` only where the machine has neither nft nor iptables for one common rule;
    `host_ports` for the pods that have some: the plugin costs all others 5 ms for nothing.
    `bandwidth` likewise for those that have limits of it."""
    bridge: Obj = {
        "type": "bridge",
        "bridge": network.bridge,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": network.subnet}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": ipam_dir,
        },
    }
    if masquerade:
        bridge["ipMasq"] = True
    plugins = [bridge]
    if host_ports:
        plugins.append({"type": "portmap", "capabilities": {"portMappings": True}, "snat": True})
    if bandwidth:
        plugins.append({"type": "bandwidth", "capabilities": {"bandwidth": True}})
    return {"cniVersion": "1.0.0", "name": _NAME, "plugins": plugins}


def nft_table(network: PodNetwork) -> str:
    return f"{network.bridge}-pods"


def proxy_place(
    network: PodNetwork, service_cidrs: Sequence[str], cluster_cidrs: Sequence[str] = ()
) -> ProxyPlace:
    """Where this network's rules are: one table for pods, Services and all else of the cluster."""
    return ProxyPlace(
        table=nft_table(network),
        bridge=network.bridge,
        cluster_cidrs=_all_pods(network, cluster_cidrs),
        service_cidrs=tuple(service_cidrs),
        other_bridges=f"{_NAME}*",
        pod_cidrs=(network.subnet,),
        gateways=(network.gateway,),
    )


def _all_pods(network: PodNetwork, cluster_cidrs: Sequence[str]) -> tuple[str, ...]:
    """The cluster's ranges, and this node's own where it is in none of them."""
    own = ipaddress.IPv4Network(network.subnet)
    ranges = [each for each in cluster_cidrs if ":" not in each]
    if any(own.subnet_of(ipaddress.IPv4Network(each)) for each in ranges):
        return tuple(ranges)
    return (*ranges, network.subnet)


def iptables_rules(network: PodNetwork, *, masquerade: bool, forward: bool) -> list[list[str]]:
    """Each as table, chain and rule; `forward` where the machine drops what it forwards."""
    mark = ["-m", "comment", "--comment", f"sampan {network.bridge}"]
    rules: list[list[str]] = [_loopback_guard(network.bridge, mark)]
    if masquerade:
        outside = ["!", "-d", network.subnet, *mark, "-j", "MASQUERADE"]
        rules.append(["nat", "POSTROUTING", "-s", network.subnet, *outside])
    if forward:
        rules.append(["filter", "FORWARD", "-i", network.bridge, *mark, "-j", "ACCEPT"])
        rules.append(["filter", "FORWARD", "-o", network.bridge, *mark, "-j", "ACCEPT"])
    return rules


def _loopback_guard(bridge: str, mark: list[str]) -> list[str]:
    """Host ports make the kernel route 127/8 on the bridge (route_localnet), so that a pod which
    writes its own packets would reach what listens on the machine's loopback only. As kube-proxy:
    what belongs to a host port's own connection goes on."""
    known = ["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT"]
    return ["filter", "INPUT", "-i", bridge, "-d", "127.0.0.0/8", *known, *mark, "-j", "DROP"]


def portmap_leftovers(saved: str, subnet: str) -> list[list[str]]:
    """What to tell iptables so that nothing of the portmap plugin's rules for `subnet` is left.

    `saved` is the nat table as iptables-save prints it. The plugin's common chains go when
    nobody's ports are left in them: the plugin itself never removes them.
    """
    rules = [shlex.split(line) for line in saved.splitlines() if line.startswith("-A ")]
    own = {rule[1] for rule in rules if rule[1].startswith("CNI-DN-") and _leads_to(rule, subnet)}
    jumps = [rule for rule in rules if rule[1] == _PORTMAP_DNAT]
    commands = [["-D", *rule[1:]] for rule in jumps if rule[-1] in own]
    for chain in sorted(own):
        commands += [["-F", chain], ["-X", chain]]
    if f":{_PORTMAP_DNAT} " in saved and all(rule[-1] in own for rule in jumps):
        commands += [["-D", *rule[1:]] for rule in rules if rule[-1] in _PORTMAP_CHAINS[:2]]
        for chain in _PORTMAP_CHAINS:
            if f":{chain} " in saved:
                commands += [["-F", chain], ["-X", chain]]
    return commands


def _leads_to(rule: Sequence[str], subnet: str) -> bool:
    if "--to-destination" not in rule:
        return False
    address = rule[rule.index("--to-destination") + 1].rpartition(":")[0]
    return ipaddress.ip_address(address) in ipaddress.ip_network(subnet)


def owner_mark(data_dir: Path) -> str:
    return "sampan " + hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:16]


# ---- effects


def plugin_directory() -> Path | None:
    """Where the CNI plugins are, all of those that are needed."""
    for directory in PLUGIN_DIRECTORIES:
        if all((Path(directory) / plugin).exists() for plugin in PLUGINS):
            return Path(directory)
    return None


def shapes_bandwidth() -> bool:
    """The plugin for it is optional."""
    directory = plugin_directory()
    return directory is not None and (directory / "bandwidth").exists()


def foreign_plugins() -> Path:
    """Where a user's own plugins are, as elsewhere."""
    found = [Path(each) for each in (_FOREIGN_PLUGINS, *PLUGIN_DIRECTORIES) if Path(each).is_dir()]
    return found[0] if found else Path(_FOREIGN_PLUGINS)


def conf_directory(data_dir: Path) -> Path:
    return data_dir / "cni"


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
        interfaces_directory(data_dir), network.bridge, nft_table(network), (network.subnet,), mtu
    )


def set_up(
    data_dir: Path,
    service_cidrs: Sequence[str] = (),
    cluster_cidrs: Sequence[str] = (),
    subnet: str = "",
    *,
    reference: bool = False,
) -> PodNetwork:
    """The network of this data directory: as recorded, or chosen now. Takes some milliseconds.

    What is addressed to `service_cidrs` does not leave the machine from now on. `subnet` is what
    the cluster gave this node, if it gave any. `reference`: the reference plugins make interfaces.
    """
    network = reserve(data_dir, subnet, next(iter(cluster_cidrs), _DEFAULT_RANGE))
    for cidr in service_cidrs:
        if ":" not in cidr:
            _route_to_bridge(network, cidr)
    place = proxy_place(network, service_cidrs, cluster_cidrs)
    by_nft = _load_rules(place)
    by_plugin = not _masquerade(network, by_nft=by_nft)
    if by_nft and not reference and pod_interfaces.is_possible():
        pod_interfaces.install(interfaces_directory(data_dir), plugin_directory())
        plain, special = own_conflist(), own_conflist(bandwidth=shapes_bandwidth())
    else:
        if plugin_directory() is None:
            raise NetworkError("the CNI plugins (apt package containernetworking-plugins) are "
                               "missing, and sampan's own needs nft")  # fmt: skip
        pod_interfaces.remove_all(interfaces_directory(data_dir))
        make = functools.partial(
            conflist, network, str(ipam_directory(data_dir)), masquerade=by_plugin
        )
        plain, special = make(), make(host_ports=True, bandwidth=shapes_bandwidth())
    _write_configurations(conf_directory(data_dir), plain, special)
    forwarding = Path("/proc/sys/net/ipv4/ip_forward")
    if forwarding.read_text().strip() != "1":
        forwarding.write_text("1")
    return network


def _write_configurations(conf_dir: Path, plain: Obj, special: Obj) -> None:
    """For most pods, and for those with host ports or limits of bandwidth."""
    for directory, config in ((conf_dir, plain), (conf_dir / HOST_PORTS, special)):
        directory.mkdir(parents=True, exist_ok=True)
        _write_if_changed(directory / "10-sampan.conflist", json.dumps(config, indent=1))


@asynccontextmanager
async def answered_plugin(data_dir: Path) -> AsyncIterator[None]:
    """Where pods' interfaces are ours, somebody answers the runtime's calls meanwhile."""
    network = record(data_dir)
    if network is None or not uses_own_plugin(data_dir):
        yield
        return
    interfaces = PodInterfaces(interface_settings(data_dir, network))
    try:
        await interfaces.start()
    except (OSError, nft.NftError) as error:
        log.warning("interfaces of pods are removed without the runtime", error=error)
    try:
        yield
    finally:
        await interfaces.stop()


def tear_down(data_dir: Path) -> None:
    """Remove bridge, rules, addresses and files; what is already gone is no error."""
    network = record(data_dir)
    pod_interfaces.remove_all(interfaces_directory(data_dir))
    if network is not None and alias_of(network.bridge) == owner_mark(data_dir):
        if shutil.which("iptables"):
            _remove_iptables_rules(network)
        if shutil.which("nft"):
            _run(["nft", "delete", "table", "ip", nft_table(network)])
        overlay.tear_down(data_dir, network.bridge)
        _delete_bridge(network.bridge)
    shutil.rmtree(conf_directory(data_dir), ignore_errors=True)
    shutil.rmtree(ipam_directory(data_dir), ignore_errors=True)
    _record_file(data_dir).unlink(missing_ok=True)


def reserve(data_dir: Path, subnet: str = "", cluster_cidr: str = _DEFAULT_RANGE) -> PodNetwork:
    """The bridge with its address; asked again, the same one."""
    mark = owner_mark(data_dir)
    known = record(data_dir)
    if known is not None and alias_of(known.bridge) == mark:
        return known
    routes = parse_routes(Path("/proc/net/route").read_text())
    for network in [known] if known is not None else []:
        if is_free(network, routes) and _create_bridge(network, mark):
            return network
    given = [PodNetwork(each.bridge, subnet) for each in candidates()] if subnet else []
    for network in (*given, *candidates(cluster_cidr)):
        if is_free(network, routes) and _create_bridge(network, mark):
            if subnet and network.subnet != subnet:
                log.warning("the node's range is taken on this machine", cidr=subnet)
            data_dir.mkdir(parents=True, exist_ok=True)
            # Addresses of another subnet mean nothing any more.
            shutil.rmtree(ipam_directory(data_dir), ignore_errors=True)
            _write_if_changed(_record_file(data_dir), json.dumps(asdict(network)))
            return network
    raise NetworkError(
        f"no free pod subnet in {cluster_cidr}: every one overlaps with a route of this machine; "
        "--cluster-cidr chooses another range"
    )


def record(data_dir: Path) -> PodNetwork | None:
    """What was chosen at an earlier start."""
    try:
        return PodNetwork(**json.loads(_record_file(data_dir).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _record_file(data_dir: Path) -> Path:
    return data_dir / "network.json"


def ipam_directory(data_dir: Path) -> Path:
    return data_dir / "cni-ipam"


def _create_bridge(network: PodNetwork, mark: str) -> bool:
    """False when somebody else has a bridge of that name. The bridge gets its address at once:
    its route is what other sampans see."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        try:
            fcntl.ioctl(control, _SIOCBRADDBR, _name(network.bridge) + b"\0")
        except OSError as error:
            if error.errno == errno.EEXIST:
                return False
            raise NetworkError(f"cannot create the bridge {network.bridge}: {error}") from error
        try:
            set_alias(network.bridge, mark)
            _configure(control, network)
        except OSError as error:
            _delete_bridge(network.bridge)
            raise NetworkError(f"cannot set up the bridge {network.bridge}: {error}") from error
    return True


def _configure(control: socket.socket, network: PodNetwork) -> None:
    name = _name(network.bridge)
    mask = str(ipaddress.IPv4Network(network.subnet).netmask)
    for request, address in ((_SIOCSIFADDR, network.gateway), (_SIOCSIFNETMASK, mask)):
        sockaddr = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(control, request, struct.pack("16s16s8x", name, sockaddr))
    # A bridge takes the lowest hardware address of its ports, which changes as pods come and go
    # and leaves them with stale neighbours; one that was set stays.
    hardware = fcntl.ioctl(control, _SIOCGIFHWADDR, struct.pack("16s24x", name))
    fcntl.ioctl(control, _SIOCSIFHWADDR, hardware)
    _set_flags(control, name, up=True)


def _delete_bridge(bridge: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        try:
            _set_flags(control, _name(bridge), up=False)
            fcntl.ioctl(control, _SIOCBRDELBR, _name(bridge) + b"\0")
        except OSError as error:
            if error.errno not in (errno.ENODEV, errno.ENXIO):
                log.warning("cannot delete the bridge", bridge=bridge, error=error)


def _set_flags(control: socket.socket, name: bytes, *, up: bool) -> None:
    answer = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sH22x", name, 0))
    flags = struct.unpack_from("16xH", answer)[0]
    flags = flags | _IFF_UP if up else flags & ~_IFF_UP
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, flags))


def _name(interface: str) -> bytes:
    return interface.encode()[:15]


def _route_to_bridge(network: PodNetwork, cidr: str) -> None:
    """The service range leads to the pods' bridge, where nobody answers for what no rule has sent
    on. So nothing of it leaves by the default route, and there is a way to it where there is no
    such route. Where another sampan has taken the range already, it is for the host's own use."""
    try:
        add_route(cidr, network.bridge)
    except FileExistsError:
        log.info("another cluster on this machine has the service range", cidr=cidr)
    except OSError as error:
        log.warning("no route for the service range", cidr=cidr, error=error)


def _load_rules(place: ProxyPlace) -> bool:
    try:
        nft.load("ip", place.table, ruleset.skeleton("ip", place))
    except nft.NftError as error:
        log.warning("pods are masqueraded without nftables, and Services lead nowhere", error=error)
        return False
    return True


def _masquerade(network: PodNetwork, *, by_nft: bool) -> bool:
    """True when one rule for all pods is in place."""
    if not shutil.which("iptables"):
        return by_nft
    # Docker sets this policy: without a rule, nothing leaves the pods' bridge.
    drops = "-P FORWARD DROP" in _output(["iptables", "-w", "-S", "FORWARD"])
    rules = iptables_rules(network, masquerade=not by_nft, forward=drops)
    done = [_iptables("-C", rule) or _iptables("-I", rule) for rule in rules]
    return by_nft or all(done)


def _remove_iptables_rules(network: PodNetwork) -> None:
    for rule in iptables_rules(network, masquerade=True, forward=True):
        if _iptables("-C", rule):
            _iptables("-D", rule)
    saved = _output(["iptables-save", "-t", "nat"]) if shutil.which("iptables-save") else ""
    for command in portmap_leftovers(saved, network.subnet):
        _run(["iptables", "-w", "-t", "nat", *command])


def _iptables(action: str, rule: Sequence[str]) -> bool:
    table, chain, *rest = rule
    return _run(["iptables", "-w", "-t", table, action, chain, *rest])


def _run(command: Sequence[str], stdin: str = "") -> bool:
    return _completed(command, stdin).returncode == 0


def _output(command: Sequence[str]) -> str:
    return _completed(command, "").stdout


def _completed(command: Sequence[str], stdin: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, input=stdin, text=True, capture_output=True, timeout=_COMMAND_SECONDS, check=False
    )


def _write_if_changed(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.replace(path)

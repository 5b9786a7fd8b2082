"""The bridge of one data directory's pods, and their subnet.

Job: choose both so that several sampans and the machine's other networks do not clash; make the
    bridge, remember it, and take it away.
Invariant: a bridge belongs to one data directory; its alias says to which.
"""

import errno
import fcntl
import hashlib
import ipaddress
import itertools
import json
import shutil
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.network.netlink import alias_of, routed_networks_ipv6, set_address, set_alias
from sampan.network.pods.addresses import Network

log = get_logger(__name__)

BRIDGES = "sampan"  # their names begin with it
DEFAULT_RANGE = "10.244.0.0/16"
# Of bridges without pods, where those are on somebody else's network: addresses for benchmarks
# (RFC 2544, RFC 5180), which no network has.
PODLESS_RANGES = {"ip": "198.19.0.0/16", "ip6": "2001:2::/56"}
_MORE_RANGES = ("10.200.0.0/16", "10.210.0.0/16", "10.220.0.0/16")  # where that is taken
_NODE_BITS = {4: 24, 6: 64}
_MOST_CANDIDATES = 1024

# linux/sockios.h
_SIOCBRADDBR, _SIOCBRDELBR = 0x89A0, 0x89A1
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_SIOCGIFHWADDR, _SIOCSIFHWADDR = 0x8927, 0x8924
_IFF_UP = 0x1


class NetworkError(Exception):
    """The pod network cannot be had; the message says why."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    bridge: str
    subnet: str  # 10.244.0.0/24
    second: str = ""  # of the other family, where there are two

    @property
    def subnets(self) -> tuple[str, ...]:
        return (self.subnet, self.second) if self.second else (self.subnet,)

    @property
    def gateway(self) -> str:
        return self.gateways[0]

    @property
    def gateways(self) -> tuple[str, ...]:
        return tuple(str(ipaddress.ip_network(each)[1]) for each in self.subnets)

    @property
    def families(self) -> tuple[str, ...]:
        """As nftables calls them."""
        return tuple(family_of(each) for each in self.subnets)


def has_pods(network: PodNetwork) -> bool:
    """False: it is only for what the node itself answers."""
    podless = ipaddress.ip_network(PODLESS_RANGES[network.families[0]])
    return ipaddress.ip_address(network.gateway) not in podless


def podless_ranges(service_cidrs: Sequence[str]) -> tuple[str, ...]:
    """Of the same families."""
    return tuple(PODLESS_RANGES[family_of(each)] for each in service_cidrs)


def family_of(cidr: str) -> str:
    return "ip6" if ":" in cidr else "ip"


def candidates(cluster_cidrs: Sequence[str] = (DEFAULT_RANGE,)) -> Iterator[PodNetwork]:
    """In the order in which they are tried. The number is in the bridge's name and in the subnet,
    so that two sampans that start at once cannot take the same subnet with different bridges."""
    ranges = [_subnets(each) for each in cluster_cidrs]
    for number in range(min(len(ranges[0]), _MOST_CANDIDATES)):
        # Where one range has fewer, its turn comes again: what is taken is no candidate then.
        chosen = [str(subnets[number % len(subnets)]) for subnets in ranges]
        yield PodNetwork(f"{BRIDGES}{number}", *chosen)


def _subnets(cluster_cidr: str) -> list[Network]:
    more = _MORE_RANGES if cluster_cidr == DEFAULT_RANGE else ()
    found: list[Network] = []
    for each in (cluster_cidr, *more):
        network = ipaddress.ip_network(each)
        bits = max(_NODE_BITS[network.version], network.prefixlen)
        found += itertools.islice(network.subnets(new_prefix=bits), _MOST_CANDIDATES)
    return found


def is_free(network: PodNetwork, routes: Iterable[Network]) -> bool:
    subnets = [ipaddress.ip_network(each) for each in network.subnets]
    return not any(
        route.prefixlen > 0 and route.version == subnet.version and route.overlaps(subnet)
        for route in routes
        for subnet in subnets
    )


def parse_routes(table: str) -> list[Network]:
    """/proc/net/route: addresses and masks are hexadecimal, in the machine's byte order."""
    routes: list[Network] = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7:
            address = socket.inet_ntoa(struct.pack("=I", int(fields[1], 16)))
            mask = socket.inet_ntoa(struct.pack("=I", int(fields[7], 16)))
            routes.append(ipaddress.IPv4Network(f"{address}/{mask}", strict=False))
    return routes


def owner_mark(data_dir: Path) -> str:
    return "sampan " + hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:16]


def reserve(
    data_dir: Path, subnets: Sequence[str] = (), cluster_cidrs: Sequence[str] = (DEFAULT_RANGE,)
) -> PodNetwork:
    """The bridge with its addresses; asked again, the same one."""
    network = _reserved(data_dir, subnets, cluster_cidrs)
    _mind_no_pods(network)
    return network


def _reserved(data_dir: Path, subnets: Sequence[str], cluster_cidrs: Sequence[str]) -> PodNetwork:
    mark = owner_mark(data_dir)
    known = record(data_dir)
    if known is not None:
        _check_families(known, subnets or cluster_cidrs, data_dir)
        if alias_of(known.bridge) == mark:
            return known
        if is_free(known, current_routes()) and create(known, mark):
            return known
    network = _free_network(subnets, cluster_cidrs, mark)
    if subnets and network.subnets != tuple(subnets):
        log.warning("podCIDR of the node is in use on this machine", cidr=",".join(subnets))
    data_dir.mkdir(parents=True, exist_ok=True)
    # Addresses of another subnet mean nothing any more.
    shutil.rmtree(ipam_directory(data_dir), ignore_errors=True)
    write_if_changed(_record_file(data_dir), json.dumps(asdict(network)))
    return network


def _check_families(known: PodNetwork, wanted: Sequence[str], data_dir: Path) -> None:
    if set(known.families) != {family_of(each) for each in wanted}:
        raise NetworkError(
            f"the pod network of {data_dir} has {', '.join(known.subnets)}, and keeps its families "
            "of addresses: `sampan reset`, or a new data directory, can have others"
        )


def _free_network(subnets: Sequence[str], cluster_cidrs: Sequence[str], mark: str) -> PodNetwork:
    """With a bridge. What the cluster gave is tried first."""
    routes = current_routes()
    given = [PodNetwork(each.bridge, *subnets) for each in candidates()] if subnets else []
    for network in (*given, *candidates(cluster_cidrs)):
        if is_free(network, routes) and create(network, mark):
            return network
    raise NetworkError(
        f"no free pod subnet in {','.join(cluster_cidrs)}: every one overlaps with a route of this "
        "machine; --cluster-cidr chooses another range"
    )


def current_routes() -> list[Network]:
    return [
        *parse_routes(Path("/proc/net/route").read_text()),
        *(ipaddress.ip_network(network) for network, _ in routed_networks_ipv6()),
    ]


def record(data_dir: Path) -> PodNetwork | None:
    """What was chosen at an earlier start."""
    file = _record_file(data_dir)
    if not file.exists():
        return None
    try:
        found = PodNetwork(**json_object(file))
        for each in found.subnets:
            ipaddress.ip_network(each)
        return found if found.bridge.startswith(BRIDGES) else None
    except (Damaged, ValueError, TypeError, AttributeError) as error:
        log.warning("record of the pod network unreadable", file=file, error=error)
        return None


def _record_file(data_dir: Path) -> Path:
    return data_dir / "network.json"


def forget(data_dir: Path) -> None:
    _record_file(data_dir).unlink(missing_ok=True)


def ipam_directory(data_dir: Path) -> Path:
    """Where the reference plugin keeps which addresses of the subnet are taken."""
    return data_dir / "cni-ipam"


def create(network: PodNetwork, mark: str) -> bool:
    """False when somebody else has a bridge of that name. The bridge gets its addresses at
    once: their routes are what other sampans see."""
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
            delete(network.bridge)
            raise NetworkError(f"cannot set up the bridge {network.bridge}: {error}") from error
    return True


def _configure(control: socket.socket, network: PodNetwork) -> None:
    for gateway, subnet in zip(network.gateways, network.subnets, strict=True):
        set_address(network.bridge, gateway, ipaddress.ip_network(subnet).prefixlen)
    # A bridge takes the lowest hardware address of its ports, which changes as pods come and go
    # and leaves them with stale neighbours; one that was set stays.
    name = _name(network.bridge)
    hardware = fcntl.ioctl(control, _SIOCGIFHWADDR, struct.pack("16s24x", name))
    fcntl.ioctl(control, _SIOCSIFHWADDR, hardware)
    _set_flags(control, name, up=True)


def _mind_no_pods(network: PodNetwork) -> None:
    """Routers' advertisements: a pod could tell the machine where the world is. A family that the
    pods do not have: policies would not be about it. And the machine tells no pod of a shorter way
    to another pod: there is none."""
    conf = Path("/proc/sys/net")
    switches = {
        conf / f"ipv6/conf/{network.bridge}/accept_ra": "0",
        conf / f"ipv6/conf/{network.bridge}/disable_ipv6": "0"
        if "ip6" in network.families
        else "1",
        conf / f"ipv4/conf/{network.bridge}/send_redirects": "0",
        conf / "ipv4/conf/all/send_redirects": "0",  # the other interfaces keep their own word
    }
    for switch, value in switches.items():
        try:
            if switch.read_text().strip() != value:
                switch.write_text(value)
        except FileNotFoundError:
            continue  # a machine without IPv6
        except OSError as error:
            log.warning("sysctl of the bridge not set", switch=switch, error=error)


def delete(bridge: str) -> None:
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


def write_if_changed(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.replace(path)

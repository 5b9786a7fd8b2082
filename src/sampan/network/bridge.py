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
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.network.netlink import alias_of, set_alias

log = get_logger(__name__)

BRIDGES = "sampan"  # their names begin with it
DEFAULT_RANGE = "10.244.0.0/16"
# Of bridges without pods, where those are on somebody else's network: addresses for benchmarks
# (RFC 2544), which no network has.
PODLESS_RANGE = "198.19.0.0/16"
_MORE_RANGES = ("10.200.0.0/16", "10.210.0.0/16", "10.220.0.0/16")  # where that is taken
_NODE_BITS = 24
_MOST_CANDIDATES = 1024

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


def has_pods(network: PodNetwork) -> bool:
    """False: it is only for what the node itself answers."""
    subnet = ipaddress.ip_network(network.subnet)
    return not subnet.overlaps(ipaddress.ip_network(PODLESS_RANGE))


def candidates(cluster_cidr: str = DEFAULT_RANGE) -> Iterator[PodNetwork]:
    """In the order in which they are tried. The number is in the bridge's name and in the subnet,
    so that two sampans that start at once cannot take the same subnet with different bridges."""
    more = _MORE_RANGES if cluster_cidr == DEFAULT_RANGE else ()
    ranges = (ipaddress.ip_network(each) for each in (cluster_cidr, *more))
    subnets = (subnet for each in ranges for subnet in each.subnets(new_prefix=_NODE_BITS))
    for number, subnet in enumerate(itertools.islice(subnets, _MOST_CANDIDATES)):
        yield PodNetwork(f"{BRIDGES}{number}", str(subnet))


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


def owner_mark(data_dir: Path) -> str:
    return "sampan " + hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:16]


def reserve(data_dir: Path, subnet: str = "", cluster_cidr: str = DEFAULT_RANGE) -> PodNetwork:
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
            write_if_changed(_record_file(data_dir), json.dumps(asdict(network)))
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


def forget(data_dir: Path) -> None:
    _record_file(data_dir).unlink(missing_ok=True)


def ipam_directory(data_dir: Path) -> Path:
    """Where the reference plugin keeps which addresses of the subnet are taken."""
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
            delete(network.bridge)
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

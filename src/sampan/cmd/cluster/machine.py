"""What this machine is called, where it can be reached, and what it lets us do.

Job: the node's name, its address, its name servers and our capabilities, found without sending
    anything.
"""

import contextlib
import ipaddress
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.errors import CannotStart

if TYPE_CHECKING:
    from sampan.kubelet.container_spec.name_resolution import Dns


OLDEST_KERNEL = "4.19"
RESOLV_CONF, RESOLVED_CONF = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
STUB_RESOLVERS = {"127.0.0.53", "127.0.0.54"}  # of systemd-resolved
# Networks, and namespaces and mounts: what root of an ordinary container does not have.
NEEDED_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


def lacking_capabilities(status: str) -> list[str]:
    """Of those that a real node needs; `status` is a text as /proc/self/status."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if found is None:
        return []
    effective = int(found[1], 16)
    return [name for name, bit in NEEDED_CAPABILITIES.items() if not effective >> bit & 1]


def is_new_enough(release: str) -> bool:
    """Of a kernel, for real containers."""
    numbers = [int(part) for part in re.findall(r"[0-9]+", release)[:2]]
    return numbers >= [int(part) for part in OLDEST_KERNEL.split(".")]


def missing_rights() -> list[str]:
    """Why this process cannot run real containers; empty where it may."""
    if os.geteuid() != 0:
        return ["root"]
    lacking = lacking_capabilities(Path("/proc/self/status").read_text())
    if not lacking:
        return []
    return [f"{' and '.join(lacking)} (this is root without them, as in a container)"]


def node_name(hostname: str) -> str:
    """A host's name as a node may be called: an RFC 1123 subdomain."""
    lowered = re.sub(r"[^a-z0-9.-]+", "-", hostname.strip().lower())
    return lowered.strip("-.") or "node"


def node_addresses(asked: Sequence[str], families: Sequence[str]) -> tuple[str, ...]:
    """One of each family. Those that are asked for, else the machine's own; CannotStart where what
    is asked for is of no family of the cluster."""
    by_family = {"ipv6" if ":" in each else "ipv4": each for each in asked}
    strange = set(by_family) - set(families)
    if strange:
        raise CannotStart(
            f"--node-ip {','.join(asked)} does not fit the cluster's families "
            f"{','.join(families)}: give one address of each"
        )
    return tuple(by_family.get(family) or primary_address(family) for family in families)


def own_addresses(asked: Sequence[str]) -> tuple[str, ...]:
    """Those that are asked for, else one of each family that the machine has a way out by."""
    found = tuple(asked) or (primary_address(), primary_address("ipv6"))
    return tuple(each for each in found if each != "::1")


def primary_address(family: str = "ipv4") -> str:
    """The address that packets to the outside would carry. Where there is no way out: of IPv6 one
    that others on its network could use, else loopback."""
    # "Connecting" a datagram socket only asks the routing table. Both are for examples.
    kind, far = socket.AF_INET, "192.0.2.1"
    if family == "ipv6":
        kind, far = socket.AF_INET6, "2001:db8::1"
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            address: str = probe.getsockname()[0]
    except OSError:
        return next(iter(_addresses_ipv6()), "::1") if family == "ipv6" else "127.0.0.1"
    return address


def _addresses_ipv6() -> list[str]:
    """Of every network that is not the pods' own."""
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except FileNotFoundError:
        return []
    rows = [line.split() for line in lines]
    found = [
        ipaddress.IPv6Address(bytes.fromhex(row[0]))
        for row in rows
        if not row[5].startswith("sampan")
    ]
    return [str(each) for each in found if not each.is_link_local and not each.is_loopback]


def host_dns(path: str | None = None, servers: Sequence[str] = ()) -> "Dns":
    """How this machine resolves names; with a path (resolvConf), what that file says; `servers`: by
    others than its own."""
    # Not for every verb: the command line knows its flags without the node agent.
    from sampan.kubelet.container_spec.name_resolution import Dns, parse_resolv_conf

    try:
        found = parse_resolv_conf(Path(RESOLV_CONF if path is None else path).read_text())
    except OSError:
        return Dns(tuple(servers))
    if path is None and servers:
        return Dns(tuple(servers), found.searches, found.options)
    if path is None and found.servers and set(found.servers) <= STUB_RESOLVERS:
        # Nobody answers there in a pod. As kubeadm: those that systemd-resolved asks itself.
        with contextlib.suppress(OSError):
            return parse_resolv_conf(Path(RESOLVED_CONF).read_text())
    return found


def has_apparmor() -> bool:
    """Can profiles be enforced?"""
    try:
        enabled = Path("/sys/module/apparmor/parameters/enabled").read_text()
    except OSError:
        return False
    return enabled.startswith("Y") and Path("/sys/kernel/security/apparmor").exists()

"""What this machine is called, where it can be reached, and what it lets us do.

Job: the node's name, its address, its name servers and our capabilities, found without sending
    anything.
"""

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sampan.kubelet.container_spec.name_resolution import Dns


OLDEST_KERNEL = "4.19"
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


def primary_address() -> str:
    """The address that packets to the outside would carry; loopback where there is no way out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # "Connecting" a datagram socket only asks the routing table. 192.0.2.1 is for examples.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


def host_dns() -> "Dns":
    """How this machine resolves names."""
    # Not for every verb: the command line knows its flags without the node agent.
    from sampan.kubelet.container_spec.name_resolution import Dns, parse_resolv_conf

    try:
        return parse_resolv_conf(Path("/etc/resolv.conf").read_text())
    except OSError:
        return Dns()

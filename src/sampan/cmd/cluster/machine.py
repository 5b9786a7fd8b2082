"""What this machine is called and where it can be reached.

Job: the node's name, its address and its name servers, found without sending anything.
"""

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sampan.kubelet.container_spec.name_resolution import Dns


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

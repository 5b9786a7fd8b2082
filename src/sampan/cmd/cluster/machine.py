"""What this machine is called and where it can be reached.

Job: the node's name, its address and its name servers, found without sending anything.
"""

import re
import socket
from pathlib import Path


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


def name_servers(resolv_conf: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The name servers and search domains of a resolv.conf."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    for line in resolv_conf.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            servers.append(words[1])
        elif len(words) > 1 and words[0] == "search":
            searches = tuple(words[1:])
    return tuple(servers), searches


def host_name_servers() -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        return name_servers(Path("/etc/resolv.conf").read_text())
    except OSError:
        return (), ()

"""Under which names and addresses an API server is found.

Job: where it listens → what its certificate carries, and what others are told. Pure.
"""

import ipaddress
from collections.abc import Sequence

from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import SERVICE_CIDR

EVERYWHERE = ("0.0.0.0", "::")


def server_names(
    bind_address: str,
    host: str,
    addresses: Sequence[str],
    service_cidrs: Sequence[str] = (SERVICE_CIDR,),
) -> list[str]:
    """Every name under which a client may come to the API server."""
    service = "kubernetes"
    names = [service, f"{service}.default", f"{service}.default.svc"]
    names += [f"{service}.default.svc.cluster.local", "localhost", "127.0.0.1", "::1"]
    names += [str(ipaddress.ip_network(cidr)[1]) for cidr in service_cidrs]
    names += [host, *addresses]
    if bind_address not in EVERYWHERE:
        names.append(bind_address)
    return list(dict.fromkeys(names))


def advertise_address(bind_address: str, node_address: str, gateway: str) -> str:
    """What the endpoints of the Service `kubernetes` say: an address that pods can reach, and that
    no other machine can unless the user has opened the server to others. Raises CannotStart where
    it would not be of the Service's own family, which is the node's."""
    if bind_address in EVERYWHERE:
        return node_address
    try:
        bound = ipaddress.ip_address(bind_address)
    except ValueError:  # a name: endpoints are addresses
        return gateway or node_address
    if bound.is_loopback and gateway:
        return gateway
    wanted = ipaddress.ip_address(node_address).version
    if bound.version != wanted and not bound.is_loopback:
        raise CannotStart(
            f"--bind-address {bind_address} is no IPv{wanted} address, and the cluster's main "
            f"family is IPv{wanted}: bind to one of those, to 0.0.0.0 or to ::"
        )
    return bind_address


def url_of(address: str, port: int) -> str:
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def reachable(bind_address: str) -> str:
    return "127.0.0.1" if bind_address in EVERYWHERE else bind_address


def opening(bind_address: str, port: int) -> str:
    """What a server that listens there opens to others; empty where it is for this machine only."""
    try:
        closed = ipaddress.ip_address(bind_address).is_loopback
    except ValueError:
        closed = bind_address == "localhost"
    if closed:
        return ""
    where = "every address of this machine" if bind_address in EVERYWHERE else bind_address
    return (
        f"--bind-address {bind_address}: other machines reach the API at {where}, port {port}; who "
        "has no certificate or token of this cluster learns there how it is, and its version"
    )

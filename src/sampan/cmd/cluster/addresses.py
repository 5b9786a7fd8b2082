"""Under which names and addresses an API server is found.

Job: where it listens → what its certificate carries, and what others are told. Pure.
"""

import ipaddress

from sampan.cmd.settings import SERVICE_CIDR

EVERYWHERE = ("0.0.0.0", "::")


def server_names(
    bind_address: str, host: str, address: str, service_cidr: str = SERVICE_CIDR
) -> list[str]:
    """Every name under which a client may come to the API server."""
    service = "kubernetes"
    names = [service, f"{service}.default", f"{service}.default.svc"]
    names += [f"{service}.default.svc.cluster.local", "localhost", "127.0.0.1", "::1"]
    first_of_services = str(next(ipaddress.ip_network(service_cidr).hosts()))
    names += [first_of_services, host, address]
    if bind_address not in EVERYWHERE:
        names.append(bind_address)
    return list(dict.fromkeys(names))


def advertise_address(bind_address: str, node_address: str, gateway: str) -> str:
    """What the endpoints of the Service `kubernetes` say: an address that pods can reach, and that
    no other machine can unless the user has opened the server to others."""
    if bind_address in EVERYWHERE:
        return node_address
    try:
        local = ipaddress.ip_address(bind_address).is_loopback
    except ValueError:  # a name: endpoints are addresses
        return gateway or node_address
    return gateway if local and gateway else bind_address


def reachable(bind_address: str) -> str:
    return "127.0.0.1" if bind_address in EVERYWHERE else bind_address

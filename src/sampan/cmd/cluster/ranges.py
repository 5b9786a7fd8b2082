"""The cluster's ranges of addresses: one for pods, one for Services.

Job: what was asked for and what an earlier start chose → the ranges, or one sentence that says what
    is wrong with them. Pure.
Invariant: a cluster keeps its ranges: objects in its store have addresses of them.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any

from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CLUSTER_CIDR, SERVICE_CIDR, Ranges

NODE_BITS = 24  # of each node's own range
SMALLEST_SERVICE_BITS = 28  # the tenth address is the name server's
LARGEST_SERVICE_BITS = 12  # as upstream
DNS_NUMBER = 10
_DEFAULTS = {"cluster": CLUSTER_CIDR, "service": SERVICE_CIDR}


def chosen_ranges(asked: Ranges, recorded: Mapping[str, Any]) -> Ranges:
    """Empty where nothing was asked for. Raises CannotStart."""
    found = {}
    for which, wanted in (("cluster", asked.cluster), ("service", asked.service)):
        before = str(recorded.get(f"{which}_cidr") or "")
        if wanted and before and wanted != before:
            raise CannotStart(
                f"--{which}-cidr {wanted}: this cluster has {before}, and keeps it; "
                "a new data directory can have another"
            )
        found[which] = wanted or before or _DEFAULTS[which]
    ranges = Ranges(found["cluster"], found["service"])
    complaint = complaint_about(ranges)
    if complaint:
        raise CannotStart(complaint)
    return ranges


def complaint_about(ranges: Ranges) -> str:
    """Empty where nothing is wrong."""
    pods, services = ipaddress.ip_network(ranges.cluster), ipaddress.ip_network(ranges.service)
    for flag, network in (("--cluster-cidr", pods), ("--service-cidr", services)):
        if network.version == 6:
            return f"{flag} {network}: IPv6 is not there yet: give a range of IPv4"
    if pods.prefixlen > NODE_BITS:
        return f"--cluster-cidr {pods} is too small: each node gets a /{NODE_BITS} of it"
    if services.prefixlen > SMALLEST_SERVICE_BITS:
        return (
            f"--service-cidr {services} is too small: a /{SMALLEST_SERVICE_BITS} is the smallest, "
            "as the name server has the tenth address"
        )
    if services.prefixlen < LARGEST_SERVICE_BITS:
        return f"--service-cidr {services} is too large: a /{LARGEST_SERVICE_BITS} is the largest"
    if pods.overlaps(services):
        return f"--cluster-cidr {pods} and --service-cidr {services} overlap"
    return ""


def dns_address(ranges: Ranges) -> str:
    return str(ipaddress.ip_network(ranges.service)[DNS_NUMBER])

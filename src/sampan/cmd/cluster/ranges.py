"""The cluster's families and ranges of addresses: one of each family for pods, and for Services.

Job: what was asked for and what an earlier start chose → families and ranges, or one sentence that
    says what is wrong with them. Pure.
Invariant: a cluster keeps its ranges: objects in its store have addresses of them.
Invariant: pods' and Services' ranges are of the same families, in the same order.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import (
    CLUSTER_CIDR,
    CLUSTER_CIDR_IPV6,
    SERVICE_CIDR,
    SERVICE_CIDR_IPV6,
    Ranges,
)

NODE_BITS = {4: 24, 6: 64}  # of each node's own range
SMALLEST_SERVICE_BITS = {4: 28, 6: 124}  # the tenth address is the name server's
LARGEST_SERVICE_BITS = {4: 12, 6: 64}  # as upstream
DNS_NUMBER = 10
_DEFAULTS = {
    "cluster": {"ipv4": CLUSTER_CIDR, "ipv6": CLUSTER_CIDR_IPV6},
    "service": {"ipv4": SERVICE_CIDR, "ipv6": SERVICE_CIDR_IPV6},
}


def chosen_ranges(asked: Ranges, recorded: Mapping[str, Any]) -> Ranges:
    """Empty where nothing was asked for. Raises CannotStart."""
    given = {"cluster": asked.cluster, "service": asked.service}
    found: dict[str, tuple[str, ...]] = {}
    for which, wanted in given.items():
        before = tuple(each for each in str(recorded.get(f"{which}_cidr") or "").split(",") if each)
        if wanted and before and set(wanted) != set(before):
            raise CannotStart(
                f"--{which}-cidr {','.join(wanted)}: this cluster has {','.join(before)}, and "
                "keeps it; a new data directory can have another"
            )
        found[which] = wanted or before
    families = asked.families or _families(found["service"] or found["cluster"]) or ("ipv4",)
    for which, cidrs in found.items():
        _check_families(f"--{which}-cidr", cidrs, families)
        ordered = sorted(cidrs, key=lambda cidr: families.index(_family(cidr)))
        found[which] = tuple(ordered or (_DEFAULTS[which][family] for family in families))
    ranges = Ranges(found["cluster"], found["service"], families)
    complaint = complaint_about(ranges)
    if complaint:
        raise CannotStart(complaint)
    return ranges


def _check_families(flag: str, cidrs: Sequence[str], families: Sequence[str]) -> None:
    if cidrs and set(_families(cidrs)) != set(families):
        raise CannotStart(
            f"{flag} {','.join(cidrs)} does not fit the families {','.join(families)}: "
            "give one range of each family that --ip-families names"
        )


def _family(cidr: str) -> str:
    return "ipv6" if ":" in cidr else "ipv4"


def _families(cidrs: Sequence[str]) -> tuple[str, ...]:
    return tuple(_family(cidr) for cidr in cidrs)


def complaint_about(ranges: Ranges) -> str:
    """Empty where nothing is wrong."""
    for cluster, service in zip(ranges.cluster, ranges.service, strict=True):
        pods, services = ipaddress.ip_network(cluster), ipaddress.ip_network(service)
        version = pods.version
        if pods.prefixlen > NODE_BITS[version]:
            return (
                f"--cluster-cidr {pods} is too small: each node gets a /{NODE_BITS[version]} of it"
            )
        if services.prefixlen > SMALLEST_SERVICE_BITS[version]:
            return (
                f"--service-cidr {services} is too small: a /{SMALLEST_SERVICE_BITS[version]} is "
                "the smallest, as the name server has the tenth address"
            )
        if services.prefixlen < LARGEST_SERVICE_BITS[version]:
            return (
                f"--service-cidr {services} is too large: a /{LARGEST_SERVICE_BITS[version]} is "
                "the largest"
            )
        if pods.overlaps(services):
            return f"--cluster-cidr {pods} and --service-cidr {services} overlap"
    return ""


def dns_addresses(ranges: Ranges) -> tuple[str, ...]:
    """Of the Service kube-dns, one of each family."""
    return tuple(str(ipaddress.ip_network(each)[DNS_NUMBER]) for each in ranges.service)

"""Topology hints of EndpointSlices: the zones and nodes that each endpoint is meant for.

Job: a Service's traffic distribution, or its topology mode, → hints per endpoint, or why there are
    none. Pure.
Invariant: either every ready endpoint has a hint or none has: a proxy in a zone without any would
    have nobody to send to. (Traffic distributions are a preference: there each stands alone.)
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj, annotations_of, labels_of
from sampan.api.quantity import value_of
from sampan.api.rules.conditions import is_true
from sampan.core.fast_dataclass import dataclass

ZONE = "topology.kubernetes.io/zone"
MODE = "service.kubernetes.io/topology-mode"
OLD_MODE = "service.kubernetes.io/topology-aware-hints"
OVERLOAD = 0.2  # as upstream: a zone may be this much busier than its share of the processors
_NOT_COUNTED = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

NO_NODE_FACTS = (
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
)
TOO_FEW = "Insufficient number of endpoints"
TOO_BUSY = (
    "Unable to allocate minimum required endpoints to each zone"
    " without exceeding overload threshold"
)  # fmt: skip
NO_ZONE = "One or more endpoints do not have a zone specified"


class NoHints(Exception):
    """Why proportional hints cannot be given; the text is for the event."""


@dataclass(frozen=True, slots=True)
class _Share:
    least: int
    desired: float


def is_proportional(service: Obj) -> bool:
    """Whether the hints shall follow the zones' processors."""
    annotations = annotations_of(service)
    mode = annotations.get(MODE, annotations.get(OLD_MODE, ""))
    return mode in ("Auto", "auto")


def preferred_hints(service: Obj, endpoint: Obj) -> Obj | None:
    """The hints that spec.trafficDistribution asks for."""
    wanted = service["spec"].get("trafficDistribution")
    if wanted is None or not endpoint["conditions"]["ready"]:
        return None
    hints: Obj = {}
    if zone := endpoint.get("zone"):
        hints["forZones"] = [{"name": zone}]
    if wanted == "PreferSameNode" and (node := endpoint.get("nodeName")):
        hints["forNodes"] = [{"name": node}]
    return hints or None


def ratios_of(nodes: Sequence[Obj]) -> Mapping[str, float] | None:
    """Zone → its part of all processors of ready nodes; None where a node does not say."""
    milli: Counter[str] = Counter()
    for node in nodes:
        if any(label in labels_of(node) for label in _NOT_COUNTED) or not is_true(node, "Ready"):
            continue
        zone = labels_of(node).get(ZONE, "")
        cpu = ((node.get("status") or {}).get("allocatable") or {}).get("cpu")
        if not zone or cpu is None:
            return None
        milli[zone] += value_of(cpu).milli()
    total = sum(milli.values())
    return {zone: part / total for zone, part in milli.items()} if total else None


def proportional(
    endpoints: Mapping[str, Obj], ratios: Mapping[str, float] | None
) -> Mapping[str, str]:
    """Endpoint's uid → the zone that it is for. Raises NoHints."""
    zones = {
        uid: str(endpoint.get("zone") or "")
        for uid, endpoint in endpoints.items()
        if endpoint["conditions"]["ready"]
    }
    shares = _shares(len(zones), ratios)
    if not all(zones.values()):
        raise NoHints(NO_ZONE)
    giving, receiving = _moves(shares, Counter(zones.values()))
    for uid in sorted(zones):
        if giving[zones[uid]] > 0:
            taker = next(zone for zone in sorted(receiving) if receiving[zone] > 0)
            giving[zones[uid]] -= 1
            receiving[taker] -= 1
            zones[uid] = taker
    return zones


def _shares(count: int, ratios: Mapping[str, float] | None) -> dict[str, _Share]:
    if ratios is None or len(ratios) < 2:  # as upstream, which forgets the ratio of a single zone
        raise NoHints(NO_NODE_FACTS)
    if len(ratios) > count:
        raise NoHints(f"{TOO_FEW} ({count} endpoints, {len(ratios)} zones)")
    shares: dict[str, _Share] = {}
    for zone, ratio in ratios.items():
        desired = ratio * count
        least = math.ceil(desired / (1 + OVERLOAD))
        shares[zone] = _Share(least, max(desired, float(least)))
    if sum(share.least for share in shares.values()) > count:
        raise NoHints(f"{TOO_BUSY} ({count} endpoints, {len(ratios)} zones)")
    return shares


def _moves(
    shares: Mapping[str, _Share], there: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """How many endpoints each zone gives away, and how many each gets."""
    surplus = {zone: number - _desired_share(shares, zone) for zone, number in there.items()}
    lack = {zone: share.desired - there.get(zone, 0) for zone, share in shares.items()}
    giving: Counter[str] = Counter()
    receiving: Counter[str] = Counter()
    while True:
        giver = max(sorted(surplus), key=lambda zone: surplus[zone], default="")
        taker = max(sorted(lack), key=lambda zone: lack[zone], default="")
        if not giver or not taker:
            return giving, receiving
        gives, gets = surplus[giver], lack[taker]
        if gives < 0.5 or gets < 0.5 or (gives < 1 and gets < 1):
            return giving, receiving
        giving[giver] += 1
        surplus[giver] -= 1
        receiving[taker] += 1
        lack[taker] -= 1


def _desired_share(shares: Mapping[str, _Share], zone: str) -> float:
    share = shares.get(zone)
    return 0.0 if share is None else share.desired

"""Node IPAM: a range of pod addresses for each node.

Job: give every node a podCIDR out of the cluster's ranges, once.
Invariant: no two nodes have overlapping ranges; a range is given once and never changed.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from itertools import islice

from sampan.api.objects import Obj, is_deleted, name_of
from sampan.api.resources import NODES
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import NOTHING, Action, Plan, Record, merge_patch
from sampan.controllers.controller import Caches, Controller, View, own_key

MASKS = {4: 24, 6: 64}  # as upstream's --node-cidr-mask-size
# How many ranges are tried before a cluster counts as full: as upstream, a node's bits at most 16.
MOST_RANGES = 65536
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def node_ipam_controller(cluster_cidrs: Sequence[str]) -> Controller:
    ranges = [ipaddress.ip_network(cidr) for cidr in cluster_cidrs]

    async def planned(view: View, key: str) -> Plan:
        node = view.cache(NODES).get(key)
        return NOTHING if node is None else plan(node, list(view.cache(NODES).all()), ranges)

    return Controller(
        name="node-ipam-controller",
        component="cidrAllocator",
        aliases=("nodeipam",),
        wakes={NODES: own_key if ranges else _nobody},
        planned=planned,
        workers=1,  # one after the other, or two would take the same range
    )


def plan(node: Obj, nodes: Sequence[Obj], ranges: Sequence[_Network]) -> Plan:
    if is_deleted(node) or (node.get("spec") or {}).get("podCIDR"):
        return NOTHING
    taken = {cidr for other in nodes for cidr in (other.get("spec") or {}).get("podCIDRs") or ()}
    free = [_first_free(range_, taken) for range_ in ranges]
    actions: list[Action] = []
    if None in free:
        words = f"Node {name_of(node)} status is now: CIDRNotAvailable"
        actions.append(Record(reference_to(node), "Normal", "CIDRNotAvailable", words))
        return Plan(actions, again_seconds=30.0)
    texts = [str(item) for item in free]
    patch = {"spec": {"podCIDR": texts[0], "podCIDRs": texts}}
    return Plan([merge_patch(NODES, node, patch)])


def _first_free(network: _Network, taken: set[str]) -> _Network | None:
    mask = max(MASKS[network.version], network.prefixlen)
    subnets: Iterable[_Network] = network.subnets(new_prefix=mask)
    return next((item for item in islice(subnets, MOST_RANGES) if str(item) not in taken), None)


def _nobody(_caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[str]:
    """No ranges, nothing to give: nodes have what their network gives them."""
    return ()

"""NodePorts: a host port is held by one pod per node, protocol and address.

The work is by nodes that hold the port, which are few, not by all nodes.
"""

from collections.abc import Mapping

import numpy as np

from sampan.api.rules.host_ports import ANY_ADDRESS
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter, always_resolvable, one_reason
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.rule_scope import Depends


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.usage.ports:
        return None
    allowed: BoolArray = np.ones(len(nodes), np.bool_)
    for port in pod.usage.ports:
        for node, held in nodes.ports.get((port.protocol, port.port), {}).items():
            if conflicts(port.address, held):
                allowed[nodes.at[node]] = False
    return allowed


def free_at(pod: PodShape, nodes: Snapshot, at: int) -> bool:
    node = nodes.rows[at].name
    for port in pod.usage.ports:
        held = nodes.ports.get((port.protocol, port.port), {}).get(node)
        if held and conflicts(port.address, held):
            return False
    return True


def conflicts(address: str, held: Mapping[str, int]) -> bool:
    """Any address conflicts with every other."""
    return address == ANY_ADDRESS or ANY_ADDRESS in held or address in held


NODE_PORTS = Filter(
    "NodePorts",
    mask,
    one_reason("node(s) didn't have free ports for the requested pod ports"),
    always_resolvable,
    Depends.PLACE,
    free_at,
)

"""What simulated nodes are: their shapes, names and addresses, and how often each speaks.

Job: settings → for each node its addresses, its kubelet's settings and its runtime.
Invariant: the same settings give the same nodes, in the same order.
"""

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampan.cmd.cluster.nodes import NodeIdentity, chosen_settings
from sampan.cmd.flags.scenario import nodes_in
from sampan.cmd.settings import UpSettings
from sampan.core.clock import Clock

if TYPE_CHECKING:
    from sampan.kubelet.settings import KubeletSettings
    from sampan.kubelet.simulated.node_types import NodeShape
    from sampan.kubelet.simulated.runtime import SimulatedRuntime
    from sampan.kubelet.simulated.scenario import Scenario

# A simulated runtime loses no events and a process is not partitioned from itself: a thousand nodes
# need not say every ten seconds that they are well. Still twice within a lease of 40 s.
MANY_HEARTBEAT_SECONDS, MANY_REPORT_SECONDS = 20.0, 300.0
# Where time is virtual no renewal is ever late: one within a lease is enough; and weeks pass, so
# that a status that has not changed need not be written every five minutes.
VIRTUAL_HEARTBEAT_SECONDS, VIRTUAL_REPORT_SECONDS = 36.0, 3600.0
# Less than what makes an agent count as stuck; where time is virtual, that is counted in hours.
MANY_RELIST_SECONDS, VIRTUAL_RELIST_SECONDS = 120.0, 3600.0
DAY_SECONDS = 86400.0
# With more nodes than this nobody reads that a pretended image was pulled: three events for each
# pod would take longer to write, and more memory, than all else that is known about it.
# Nor does each of so many need an agent before it has a pod.
MANY_NODES = 20


class SimulatedFleet:
    def __init__(self, settings: UpSettings, identity: NodeIdentity) -> None:
        self._settings = settings
        self._virtual = settings.clock == "virtual"
        self._families = settings.ranges.families or ("ipv4",)
        self._chosen = chosen_settings(settings.node)
        self.shapes = _chosen_shapes(settings, identity)
        self.named = {shape.name: number for number, shape in enumerate(self.shapes)}
        self.addresses = [
            _made_up_addresses(number, self._families) for number in range(len(self.shapes))
        ]
        self._at = {each[0]: number for number, each in enumerate(self.addresses)}

    @property
    def shuts_down_gracefully(self) -> bool:
        return bool(self._chosen["shutdown"])

    @property
    def heartbeat_seconds(self) -> float:
        if self._settings.quiet_nodes:
            return DAY_SECONDS
        return VIRTUAL_HEARTBEAT_SECONDS if self._virtual else MANY_HEARTBEAT_SECONDS

    @property
    def report_seconds(self) -> float:
        if self._settings.quiet_nodes:
            return DAY_SECONDS
        return VIRTUAL_REPORT_SECONDS if self._virtual else MANY_REPORT_SECONDS

    def node_at(self, address: str) -> str:
        """Empty: it is none of ours."""
        number = self._at.get(address)
        return "" if number is None else self.shapes[number].name

    def kubelet_settings(self, number: int, scenario: "Scenario") -> "KubeletSettings":
        from sampan.kubelet.settings import KubeletSettings

        shape, chosen = self.shapes[number], self._chosen
        options = {**chosen} if number == 0 else {"shutdown": chosen["shutdown"]}
        if shape.capacity is not None:
            options |= {"capacity": shape.capacity, "max_pods": shape.capacity.pods}
        return KubeletSettings(
            shape.name,
            node_ips=self.addresses[number],
            root_dir=f"{self._settings.data_dir}/kubelet",
            log_dir=f"{self._settings.data_dir}/logs/pods",
            simulated=True,
            heartbeat_seconds=self.heartbeat_seconds,
            status_report_seconds=self.report_seconds,
            relist_seconds=VIRTUAL_RELIST_SECONDS if self._virtual else MANY_RELIST_SECONDS,
            routine_events=len(self.shapes) <= MANY_NODES,
            scenario=scenario,
            pretence=shape.pretence,
            **{
                **options,
                "labels": {**shape.labels, **options.get("labels", {})},
                "taints": (*shape.taints, *options.get("taints", ())),
            },
        )

    def runtime(self, number: int, clock: Clock, scenario: "Scenario") -> "SimulatedRuntime":
        from sampan.kubelet.simulated.runtime import SimulatedRuntime

        return SimulatedRuntime(
            clock=clock,
            node_name=self.shapes[number].name,
            pod_subnets=[_made_up_subnet(number, family) for family in self._families],
            scenario=scenario,
        )


def _chosen_shapes(settings: UpSettings, identity: NodeIdentity) -> "tuple[NodeShape, ...]":
    from sampan.kubelet.simulated.node_types import NodeShape

    if settings.nodes_file:
        return nodes_in(settings.nodes_file)
    names = settings.node_names
    if not names and settings.nodes == 1:
        names = (identity.name,)
    if not names:
        width, stem = len(str(settings.nodes - 1)), settings.node_name or "node"
        names = tuple(f"{stem}-{number:0{width}d}" for number in range(settings.nodes))
    return tuple(NodeShape(name) for name in names)


def _made_up_addresses(number: int, families: Sequence[str]) -> tuple[str, ...]:
    return tuple(_made_up_address(number, family) for family in families)


def _made_up_address(number: int, family: str) -> str:
    first = "fd00:172:16::1" if family == "ipv6" else "172.16.0.1"
    return str(ipaddress.ip_address(first) + number)


def _made_up_subnet(number: int, family: str) -> str:
    """/24s of 10.0.0.0/8, or /64s, one for each node; beyond 65 536 nodes they repeat."""
    if family == "ipv6":
        return f"fd00:10:0:{number % 65536:x}::/64"
    return f"10.{number // 256 % 256}.{number % 256}.0/24"

"""Fields of a KubeletConfiguration that are the CPU, memory and topology managers'. Pure.

Job: read them over the settings that are there.
Invariant: what cannot be is refused in upstream's words, before anything is started.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.configuration import BadConfiguration
from sampan.api.objects import Obj
from sampan.api.quantity import QuantityError, value_of
from sampan.api.rules.durations import parse_seconds
from sampan.core.fast_dataclass import replace
from sampan.kubelet.resource_managers.cpu_options import cpu_options, truth_of
from sampan.kubelet.resource_managers.cpu_sets import CpuSet, parse_cpus
from sampan.kubelet.resource_managers.manager_settings import (
    CPU_STATIC,
    MEMORY_STATIC,
    NO_MEMORY_POLICY,
    NO_POLICY,
    ManagerSettings,
)
from sampan.kubelet.resource_managers.topology_policies import (
    CONTAINER,
    MOST_NUMA_NODES,
    POD,
    POLICIES,
    SINGLE_NUMA_NODE,
    TopologySettings,
)

FIELDS = (
    "cpuManagerPolicy",
    "cpuManagerPolicyOptions",
    "cpuManagerReconcilePeriod",
    "memoryManagerPolicy",
    "reservedMemory",
    "reservedSystemCPUs",
    "topologyManagerPolicy",
    "topologyManagerPolicyOptions",
    "topologyManagerScope",
)
# Of upstream's feature gates those that these fields ask for, as v1.35 has them.
GATES = {"CPUManagerPolicyAlphaOptions": False, "CPUManagerPolicyBetaOptions": True}


def with_managers(
    settings: ManagerSettings, fields: Obj, gates: Mapping[str, bool]
) -> ManagerSettings:
    """Raises BadConfiguration with everything that is wrong."""
    reading = _Reading(fields)
    changes: dict[str, Any] = {}

    def take(name: str, setting: str, read: Callable[[Any], Any]) -> None:
        if name in fields:
            changes[setting] = reading.value(name, read)

    take("cpuManagerPolicy", "cpu_policy", _one_of((NO_POLICY, CPU_STATIC)))
    take("cpuManagerPolicyOptions", "cpu_options", lambda given: cpu_options(given or {}, gates))
    take("cpuManagerReconcilePeriod", "reconcile_seconds", parse_seconds)
    take("reservedSystemCPUs", "reserved_cpus", _reserved_cpus)
    take("memoryManagerPolicy", "memory_policy", _one_of((NO_MEMORY_POLICY, MEMORY_STATIC)))
    take("reservedMemory", "reserved_memory", lambda given: _reserved_memory(given or ()))
    topology = _topology(settings.topology, fields, reading)
    if reading.problems:
        raise BadConfiguration(reading.problems)
    found = replace(settings, **changes, topology=topology)
    if (
        found.cpu_options.align_by_socket
        and found.cpu_policy == CPU_STATIC
        and topology.policy == SINGLE_NUMA_NODE
    ):
        raise BadConfiguration([
            f"Topolgy manager {SINGLE_NUMA_NODE} policy is incompatible with CPUManager "
            "align-by-socket policy option"
        ])  # fmt: skip
    return found


class _Reading:
    def __init__(self, fields: Obj) -> None:
        self._fields = fields
        self.problems: list[str] = []

    def value(self, name: str, read: Callable[[Any], Any]) -> Any:
        try:
            return read(self._fields[name])
        except (ValueError, TypeError, AttributeError, KeyError, QuantityError) as fault:
            self.problems.append(f"{name}: {fault}")
            return None


def _one_of(known: tuple[str, ...]) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given in (None, ""):
            return known[0]
        if given not in known:
            raise ValueError(f'unknown policy: "{given}"')
        return str(given)

    return read


def _reserved_cpus(given: Any) -> CpuSet:
    try:
        return parse_cpus(str(given or ""))
    except ValueError as fault:
        why = f"unable to parse reservedSystemCPUs (--reserved-cpus) {given}, error: {fault}"
        raise ValueError(f"invalid configuration: {why}") from fault


def _reserved_memory(given: Any) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for item in given:
        node = int(item.get("numaNode", 0))
        of_node = found.setdefault(node, {})
        for resource, written in (item.get("limits") or {}).items():
            if resource != "memory" and not resource.startswith("hugepages-"):
                raise ValueError(
                    f'invalid configuration: the limit type "{resource}" for NUMA node {node} is '
                    "not supported, only [memory hugepages-<HugePageSize>] is accepted"
                )
            amount = value_of(written).value()
            if not amount:
                raise ValueError(
                    "invalid configuration: reserved memory may not be zero for NUMA node "
                    f'{node} and resource "{resource}"'
                )
            if resource in of_node:
                raise ValueError(
                    "invalid configuration: the reserved memory has a duplicate value for NUMA "
                    f'node {node} and resource "{resource}"'
                )
            of_node[resource] = amount
    return found


def _topology(settings: TopologySettings, fields: Obj, reading: _Reading) -> TopologySettings:
    policy, scope = settings.policy, settings.scope
    if "topologyManagerPolicy" in fields:
        policy = fields["topologyManagerPolicy"] or POLICIES[0]
        if policy not in POLICIES:
            known = " ".join(f'"{name}"' for name in POLICIES)
            reading.problems.append(
                "invalid configuration: topologyManagerPolicy (--topology-manager-policy) "
                f'"{policy}" must be one of: [{known}]'
            )
    if "topologyManagerScope" in fields:
        scope = fields["topologyManagerScope"] or CONTAINER
        if scope not in (CONTAINER, POD):
            reading.problems.append(
                "invalid configuration: topologyManagerScope (--topology-manager-scope) "
                f'"{scope}" must be one of: "{CONTAINER}", or "{POD}"'
            )
    found = replace(settings, policy=policy, scope=scope)
    if "topologyManagerPolicyOptions" in fields:
        options = reading.value("topologyManagerPolicyOptions", _topology_options)
        found = replace(found, **(options or {}))
    return found


def _topology_options(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (given or {}).items():
        if name == "prefer-closest-numa-nodes":
            found["prefer_closest"] = truth_of(name, value)
        elif name == "max-allowable-numa-nodes":
            most = int(value)
            if most < MOST_NUMA_NODES:
                raise ValueError(
                    f'the minimum value of "{name}" should not be less than {MOST_NUMA_NODES}'
                )
            found["most_numa_nodes"] = most
        else:
            raise ValueError(f'unknown Topology Manager Policy option: "{name}"')
    return found

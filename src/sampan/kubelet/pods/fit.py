"""Pod admission on the node: resources, ports, selectors, taints, before anything is started.

Job: (pod, pods that hold resources, node) → None or the reason and message of the refusal. Pure.
Invariant: reasons and messages are upstream's: OutOfcpu, NodeAffinity, NodePorts, TaintToleration …
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from sampan.api.objects import Obj, annotations_of, labels_of, name_of, spec_of
from sampan.api.quantity import Quantity, value_of
from sampan.api.rules import pod_resources
from sampan.api.rules.host_ports import host_ports
from sampan.api.rules.node_agent.declared_features import missing_to_run
from sampan.api.rules.node_selectors import may_run_on
from sampan.api.rules.nodes import is_extended_resource
from sampan.api.rules.pods import is_static
from sampan.api.rules.tolerations import NO_EXECUTE, Taint, keeps_away, taints_of, tolerations_of
from sampan.client.by_identity import by_identity
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.spec import with_roles
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.eviction.eviction_rules import why_not_taken

NODE_OS = "linux"
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_OUT_OF = "OutOf"
# As upstream's SafeSysctlAllowlist: each belongs to the pod's own namespaces.
SAFE_SYSCTLS = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
})  # fmt: skip
RequestsOf = Callable[[Obj], Mapping[str, Quantity]]
_MORE = frozenset({"initContainers", "overhead", "resources"})  # of a spec: count, too
_NOTHING: Mapping[str, Quantity] = {}


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What the node offers to pods."""

    name: str
    labels: Mapping[str, str]
    taints: frozenset[Taint]
    allocatable: Mapping[str, str]
    pressures: frozenset[str] = frozenset()  # conditions, as MemoryPressure
    prepares_devices: bool = False  # claims of resource.k8s.io
    shutting_down: bool = False
    apparmor: bool = True  # it can be enforced
    unsafe_sysctls: Sequence[str] = ()  # allowed beyond the safe ones: names, or `net.core.*`
    # What Guaranteed pods cannot be given more or less of while they run, and by whose policy.
    pinned: Mapping[str, str] = field(default_factory=dict)


def refusal(
    pod: Obj, others: Iterable[Obj], node: NodeRoom, requests: RequestsOf | None = None
) -> Verdict | None:
    """Why the pod cannot run here; `others` are the pods that hold resources already. `requests`
    may remember what they ask for."""
    holding = list(others)
    found = (
        _shut_down(node) or _pressure_verdict(pod, node) or _os(pod, node) or _sysctls(pod, node)
        or _devices(pod, node)
        or lacking(pod, holding, node, requests)
        or _selector(pod, node) or _ports(pod, holding) or _taints(pod, node)
        or _apparmor(pod, node)
        or _undeclared(pod)
    )  # fmt: skip
    if found is None:
        return None
    return Verdict(found.reason, f"Pod was rejected: {found.message}")


def _undeclared(pod: Obj) -> Verdict | None:
    lacking = missing_to_run(spec_of(pod))
    why = f"Pod requires node features that are not available: {lacking}"
    return Verdict("PodFeatureUnsupported", why) if lacking else None


def _apparmor(pod: Obj, node: NodeRoom) -> Verdict | None:
    """As upstream: one that runs already is not looked at again."""
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    if node.apparmor or phase != "Pending" or not _wants_apparmor(pod):
        return None
    return Verdict("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")


def _wants_apparmor(pod: Obj) -> bool:
    holders = [spec_of(pod), *(container for _, container in with_roles(pod))]
    profiles = [(holder.get("securityContext") or {}).get("appArmorProfile") for holder in holders]
    if any(profile and profile.get("type") != "Unconfined" for profile in profiles):
        return True
    return any(
        key.startswith(APPARMOR_ANNOTATION) and value != "unconfined"
        for key, value in annotations_of(pod).items()
    )


def _sysctls(pod: Obj, node: NodeRoom) -> Verdict | None:
    """As upstream's allowlist: beyond what is safe, only what the node's owner allows."""
    spec = spec_of(pod)
    for sysctl in (spec.get("securityContext") or {}).get("sysctls") or ():
        name = str(sysctl.get("name") or "").replace("/", ".")
        why = ""
        if name not in SAFE_SYSCTLS and not _is_allowed(name, node.unsafe_sysctls):
            why = f'"{name}" not allowlisted'
        elif spec.get("hostNetwork") and name.startswith("net."):
            why = f'"{name}" not allowed with host net enabled'
        elif spec.get("hostIPC") and name.startswith("kernel.shm"):
            why = f'"{name}" not allowed with host ipc enabled'
        if why:
            return Verdict("SysctlForbidden", f"forbidden sysctl: {why}")
    return None


def _is_allowed(name: str, allowed: Sequence[str]) -> bool:
    return any(
        name == item or (item.endswith("*") and name.startswith(item[:-1]))
        for item in (each.replace("/", ".") for each in allowed)
    )


def depends_on_node(verdict: Verdict) -> bool:
    """Was it refused because of what others may change in the Node object?"""
    if verdict.reason in ("NodeAffinity", "TaintToleration"):
        return True
    prefix, _, name = verdict.reason.partition(_OUT_OF)
    return not prefix and is_extended_resource(name)


def lacking(
    pod: Obj, others: list[Obj], node: NodeRoom, requests: RequestsOf | None = None
) -> Verdict | None:
    """Is there not enough of something?"""
    room = value_of(node.allocatable.get("pods", "110")).value()
    if len(others) + 1 > room:
        return _out_of("pods", 1, len(others), room)
    read = requests or shared_requests
    wanted = read(pod)
    if not any(wanted.values()):
        return None
    used = dict.fromkeys(wanted, 0)  # in billionths: numbers are quick to add
    for other in others:
        for name, held in read(other).items():
            if name in used:
                used[name] += held.nanos
    for name, amount in wanted.items():
        if is_extended_resource(name) and name not in node.allocatable:
            continue  # as upstream: a resource of the cluster, which only the scheduler counts
        capacity = value_of(node.allocatable.get(name, "0"))
        taken = Quantity(used[name])
        if amount and capacity < taken + amount:
            return _out_of(
                name, *(countable_amount(name, item) for item in (amount, taken, capacity))
            )
    return None


def shared_requests(pod: Obj) -> Mapping[str, Quantity]:
    """What it asks for by its spec. `pod` is a cache's, which nobody changes any more."""
    spec = spec_of(pod)
    containers: Sequence[Obj] = spec.get("containers") or ()
    if len(containers) != 1 or not _MORE.isdisjoint(spec):
        return pod_resources.requests(pod)
    resources: Obj | None = containers[0].get("resources")
    if not resources:
        return _NOTHING
    return _requests_with(resources)


@by_identity(1024)
def _requests_with(resources: Obj) -> Mapping[str, Quantity]:
    """Of a pod with these resources of its only container, where nothing else counts."""
    return pod_resources.requests({"spec": {"containers": [{"resources": resources}]}})


def countable_amount(name: str, amount: Quantity) -> int:
    return amount.milli() if name == "cpu" else amount.value()


def _out_of(name: str, requested: int, used: int, capacity: int) -> Verdict:
    return Verdict(
        f"{_OUT_OF}{name}",
        f"Node didn't have enough resource: {name}, requested: {requested}, "
        f"used: {used}, capacity: {capacity}",
    )


def _predicate(name: str, why: str) -> Verdict:
    return Verdict(name, f"Predicate {name} failed: {why}")


def _shut_down(node: NodeRoom) -> Verdict | None:
    if not node.shutting_down:
        return None
    return Verdict("NodeShutdown", "Pod was rejected as the node is shutting down.")


def _pressure_verdict(pod: Obj, node: NodeRoom) -> Verdict | None:
    why = why_not_taken(pod, node.pressures)
    return Verdict("Evicted", why) if why else None


def _os(pod: Obj, node: NodeRoom) -> Verdict | None:
    # As upstream it is the pod's label that is asked; a selector is the scheduler's affair.
    selected = labels_of(pod).get("kubernetes.io/os")
    if selected is not None and selected != node.labels.get("kubernetes.io/os", NODE_OS):
        return Verdict(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    named = (spec_of(pod).get("os") or {}).get("name")
    if named and named != NODE_OS:
        return Verdict(
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
        )
    return None


def _devices(pod: Obj, node: NodeRoom) -> Verdict | None:
    """No driver of devices can register at a node without an API: a pod must not run without what
    it claims."""
    if node.prepares_devices or not spec_of(pod).get("resourceClaims"):
        return None
    names = ", ".join(str(claim.get("name")) for claim in spec_of(pod)["resourceClaims"])
    why = f"resource claims ({names}) need a device driver, and this node runs none"
    return Verdict("UnexpectedAdmissionError", f"Failed to prepare dynamic resources: {why}")


def _selector(pod: Obj, node: NodeRoom) -> Verdict | None:
    if may_run_on(pod, node.name, node.labels):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _ports(pod: Obj, others: list[Obj]) -> Verdict | None:
    mine = host_ports(pod)
    if not mine:
        return None
    taken = [port for other in others for port in host_ports(other)]
    if any(port.conflicts_with(held) for port in mine for held in taken):
        why = "node(s) didn't have free ports for the requested pod ports"
        return _predicate("NodePorts", why)
    return None


def _taints(pod: Obj, node: NodeRoom) -> Verdict | None:
    if not node.taints or is_static(pod):
        return None  # as upstream: what the node's owner put here runs
    # The other effects only keep the scheduler away.
    if keeps_away(tolerations_of(pod), node.taints, (NO_EXECUTE,)):
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def room_of(
    node: Obj, pressures: frozenset[str] = frozenset(), *, prepares_devices: bool = False
) -> NodeRoom:
    """The only place where admission looks inside a Node."""
    return NodeRoom(
        name_of(node),
        labels_of(node),
        taints_of(node),
        (node.get("status") or {}).get("allocatable") or {},
        pressures,
        prepares_devices,
    )

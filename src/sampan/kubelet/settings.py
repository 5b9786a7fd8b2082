"""What a node agent can be told: one frozen value, built by cmd/ and passed whole.

Job: names, addresses, directories, capacity and timing of one node.
"""

from collections.abc import Mapping
from dataclasses import field

from sampan.api import features
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.names import CGROUPFS
from sampan.kubelet.eviction.eviction_rules import EvictionSettings
from sampan.kubelet.images.credentials import NodeCredentialSettings
from sampan.kubelet.images.image_gc import ImageGCPolicy
from sampan.kubelet.node.shutdown_steps import ShutdownStep
from sampan.kubelet.resource_managers.manager_settings import NO_MANAGERS, ManagerSettings
from sampan.kubelet.simulated.scenario import NOTHING, Scenario


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the node offers; `allocatable` is this less `reserved`."""

    cpu_milli: int
    memory_bytes: int
    ephemeral_bytes: int = 0
    pods: int = 110
    reserved_cpu_milli: int = 0
    reserved_memory_bytes: int = 0
    reserved_ephemeral_bytes: int = 0
    extended: Mapping[str, str] = field(default_factory=dict)  # devices and the like, by name


@dataclass(frozen=True, slots=True)
class Reserved:
    """What pods do not get: kubeReserved and systemReserved together."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    node_name: str
    node_ips: tuple[str, ...] = ("127.0.0.1",)
    hostname: str = ""  # the node's name where empty
    root_dir: str = "/var/lib/kubelet"
    log_dir: str = "/var/log/pods"
    port: int = 10250
    cluster_domain: str = "cluster.local"
    cluster_dns: tuple[str, ...] = ()
    host_dns: tuple[str, ...] = ()  # the node's own name servers, for dnsPolicy Default
    host_searches: tuple[str, ...] = ()
    host_dns_options: tuple[str, ...] = ()
    hosts_file: str = ""  # the content of the node's own /etc/hosts
    default_seccomp: str = "Unconfined"  # for containers that name no profile
    cgroup_root: str = ""  # pods' cgroups are made below it; empty: the runtime chooses
    cgroup_driver: str = CGROUPFS
    runtime_name: str = "containerd"  # it names the cgroups of containers
    pod_pids_limit: int = -1  # of each pod; -1: none. Needs cgroup_root
    register_node: bool = True
    checkpoint: str = ""  # the file that remembers what pods were given; empty: none
    standalone: bool = False  # there is no API: only what the manifests say
    manifests: str = ""  # a directory of them, or one file
    manifest_url: str = ""
    manifest_url_headers: tuple[tuple[str, str], ...] = ()
    manifest_url_seconds: float = 20.0
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Capacity | None = None  # read from the machine where None
    reserved: Reserved = field(default_factory=Reserved)
    managers: ManagerSettings = NO_MANAGERS  # of processors, memory and their alignment
    limited_swap: bool = False  # memorySwap.swapBehavior is LimitedSwap; else containers get none
    fail_swap_on: bool = False  # on a machine with swap the node does not start
    max_pods: int = 110
    allowed_unsafe_sysctls: tuple[str, ...] = ()  # names, or `net.core.*`
    enforce_allocatable: tuple[str, ...] = ("pods",)  # as limits of the pods' cgroup
    scenario: Scenario = NOTHING  # how simulated pods behave, beside their annotations
    simulated: bool = False  # nothing of the machine is shown in the node's status
    shapes_bandwidth: bool = True  # the pod network heeds the annotations for it
    shutdown: tuple[ShutdownStep, ...] = ()  # how pods end with the machine; empty: at once
    routine_events: bool = True  # Pulled, Created, Started … of pods that simply run
    version: str = field(default_factory=lambda: features.release().git_version)
    lease_seconds: int = 40
    heartbeat_seconds: float = 10.0
    status_report_seconds: float = 300.0
    # The runtime's event stream does the work; looking at everything only finds what it lost.
    relist_seconds: float = 10.0
    relist_blind_seconds: float = 2.0  # while there is no event stream
    images_in_status: int = 50
    container_log_max_bytes: int = 10 * 1024 * 1024
    container_log_max_files: int = 5
    image_directory: str = ""  # on the disk of the images; root_dir where empty
    parallel_image_pulls: int = 4
    image_credentials: NodeCredentialSettings = field(default_factory=NodeCredentialSettings)
    eviction: EvictionSettings = field(default_factory=EvictionSettings)
    image_garbage: ImageGCPolicy = field(default_factory=ImageGCPolicy)

"""Settings of a node agent: one frozen value, built by cmd/ and passed whole.

Job: names, addresses, directories, capacity and timing of one node.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from sampan.api import features
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.names import CGROUPFS, CPU_PERIOD
from sampan.kubelet.eviction.eviction_rules import EvictionSettings
from sampan.kubelet.images.credentials import NodeCredentialSettings
from sampan.kubelet.images.image_gc import ImageGCPolicy
from sampan.kubelet.node.shutdown_steps import ShutdownStep
from sampan.kubelet.resource_managers.manager_settings import NO_MANAGERS, ManagerSettings
from sampan.kubelet.simulated.pretence import NOTHING_PRETENDED, Pretence
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
    log_registry: str = ""  # links to those directories of log_dir that are ours; empty: all are
    container_logs: str = ""  # links to each container's log, for collectors; empty: none
    port: int = 10250
    healthz: tuple[str, int] = ("127.0.0.1", 0)  # without a name or a certificate; port 0: none
    debugging_handlers: bool = True  # logs, exec, attach, port-forward of its own server
    system_logs: bool = True  # /var/log of the machine, by its own server
    system_log_queries: bool = False  # and what services of it write to the journal
    cluster_domain: str = "cluster.local"
    cluster_dns: tuple[str, ...] = ()
    resolv_conf: str | None = None  # where the node's own name servers are; None: as it is used
    host_dns: tuple[str, ...] = ()  # the node's own name servers, for dnsPolicy Default
    host_searches: tuple[str, ...] = ()
    host_dns_options: tuple[str, ...] = ()
    hosts_file: str = ""  # the content of the node's own /etc/hosts
    default_seccomp: str = "Unconfined"  # for containers that name no profile
    cgroup_root: str = ""  # pods' cgroups are made below it; empty: the runtime chooses
    cgroup_driver: str = CGROUPFS
    runtime_name: str = "containerd"  # it names the cgroups of containers
    pod_pids_limit: int = -1  # of each pod; -1: none. Needs cgroup_root
    selinux: bool = False  # it is on
    apparmor: bool = True  # it can be enforced
    unified: bool = False  # cgroups are of version 2
    cpu_quota: bool = True  # limits of cpu are kept by a quota
    cpu_period: int = CPU_PERIOD  # of that quota, in microseconds
    oom_group: bool = False  # a container that is out of memory goes whole (cgroup version 2)
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
    provider_id: str = ""
    max_pods: int = 110
    pods_per_core: int = 0  # fewer than max_pods on a small machine; 0: max_pods alone counts
    allowed_unsafe_sysctls: tuple[str, ...] = ()  # names, or `net.core.*`
    enforce_allocatable: tuple[str, ...] = ("pods",)  # as limits of the pods' cgroup
    scenario: Scenario = NOTHING  # how simulated pods behave, beside their annotations
    pretence: Pretence = NOTHING_PRETENDED  # of a simulated node
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
    crash_backoff_seconds: float = 300.0  # the longest wait of a container that crashes
    image_directory: str = ""  # on the disk of the images; root_dir where empty
    image_verification: str = "NeverVerifyPreloadedImages"
    unverified_images: tuple[str, ...] = ()  # those that everybody may use; with `/*` at the end
    parallel_image_pulls: int = 4
    image_credentials: NodeCredentialSettings = field(default_factory=NodeCredentialSettings)
    eviction: EvictionSettings = field(default_factory=EvictionSettings)
    image_garbage: ImageGCPolicy = field(default_factory=ImageGCPolicy)
    shown: Mapping[str, Any] = field(default_factory=dict)  # what /configz shows

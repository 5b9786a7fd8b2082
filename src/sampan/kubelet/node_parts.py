"""What follows from a node's settings: its machine, what pods are told of it, cgroups, sources.

Job: settings (and the machine) → the values and parts that Kubelet is built from.
"""

from dataclasses import replace

from sampan.kubelet.cgroups.limits import Limits, shares_of
from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure, Cgroups, find_hierarchies
from sampan.kubelet.container_spec.generate import Dns, NodeFacts
from sampan.kubelet.node.machine import SIMULATED, Machine, less_reserved, read_machine
from sampan.kubelet.node.node_status import allocatable_of
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.sources.manifests import FILE, HTTP

API = "api"


def sources_of(settings: KubeletSettings) -> list[str]:
    """All of them must have spoken before anything is cleaned up."""
    there = {
        API: not settings.standalone,
        FILE: bool(settings.manifests),
        HTTP: bool(settings.manifest_url),
    }
    return [source for source, wanted in there.items() if wanted]


def made_cgroups(settings: KubeletSettings, machine: Machine) -> Cgroups | None:
    """None: the runtime puts containers where it likes, and pods have no limits of their own."""
    if settings.simulated or not settings.cgroup_root:
        return None
    hierarchies = find_hierarchies()
    if hierarchies is None:
        raise CgroupFailure("this machine has no cgroups for cpu and memory")
    cgroups = Cgroups(
        settings.cgroup_root,
        hierarchies,
        pids_limit=settings.pod_pids_limit,
        driver=settings.cgroup_driver,
        runtime_name=settings.runtime_name,
        room=_room_of_pods(settings, machine) if "pods" in settings.enforce_allocatable else None,
    )
    cgroups.prepare()
    return cgroups


def _room_of_pods(settings: KubeletSettings, machine: Machine) -> Limits:
    """What all pods together may use: as upstream, evictions begin before that is reached."""
    asked = settings.reserved
    return Limits(
        cpu_shares=shares_of(machine.capacity.cpu_milli - asked.cpu_milli),
        memory_bytes=machine.capacity.memory_bytes - asked.memory_bytes,
        pids=0,
    )


def machine_of(settings: KubeletSettings) -> Machine:
    if not settings.simulated:
        found = read_machine(settings.root_dir, settings.capacity)
        if settings.capacity is not None:
            return found
        return replace(found, capacity=less_reserved(found.capacity, settings))
    return Machine(
        settings.capacity or SIMULATED.capacity,
        kernel_version=SIMULATED.kernel_version,
        os_image=SIMULATED.os_image,
    )


def facts_of(settings: KubeletSettings, machine: Machine) -> NodeFacts:
    return NodeFacts(
        node_name=settings.node_name,
        root_dir=settings.root_dir,
        log_root=settings.log_dir,
        node_ips=settings.node_ips,
        hostname=settings.hostname or settings.node_name,
        cluster_domain=settings.cluster_domain,
        cluster_dns=settings.cluster_dns,
        node_dns=Dns(settings.host_dns, settings.host_searches, settings.host_dns_options),
        hosts_file=settings.hosts_file,
        memory_bytes=machine.capacity.memory_bytes,
        allocatable=allocatable_of(machine),
        default_seccomp=settings.default_seccomp,
        cgroup_root=settings.cgroup_root,
        cgroup_driver=settings.cgroup_driver,
    )

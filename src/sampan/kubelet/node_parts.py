"""What a node is made of: on a real or a simulated machine, with an API or without one.

Job: settings → the parts in which these nodes differ; everything else of a node is the same.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.api.objects import Obj
from sampan.api.resources import SERVICES
from sampan.client.by_identity import by_identity
from sampan.client.events import EventRecorder
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.limits import Limits, PodBounds, page_size, shares_of
from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure, Cgroups, find_hierarchies
from sampan.kubelet.container_spec.generate import Dns, NodeFacts
from sampan.kubelet.container_spec.linux_resources import Swap
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.volumes_hook import Volumes
from sampan.kubelet.images.access import ImageAccess
from sampan.kubelet.node.machine import SIMULATED, Machine, less_reserved, read_machine
from sampan.kubelet.node.node_status import allocatable_of
from sampan.kubelet.node_plugins import NodePlugins, Plugins
from sampan.kubelet.pods.start_inputs import Services
from sampan.kubelet.probes.check import NodeCheck
from sampan.kubelet.probes.finding import Check
from sampan.kubelet.resource_managers.managers import CannotManage
from sampan.kubelet.settings import Capacity, KubeletSettings
from sampan.kubelet.simulated.scripted_probes import ScriptedCheck
from sampan.kubelet.sources.manifests import FILE, HTTP
from sampan.kubelet.status.recorder import EventLog
from sampan.kubelet.volumes.node_volumes import NodeVolumes
from sampan.kubelet.volumes.pod_certificates import RecordWarning
from sampan.kubelet.volumes.projected_certificates import ProjectedCertificates
from sampan.kubelet.volumes.simulated_volumes import SimulatedVolumes
from sampan.kubelet.volumes.storage_operations import StorageOperations
from sampan.kubelet.volumes.tracked_objects import TrackedObjects

if TYPE_CHECKING:
    from sampan.kubelet.simulated.simulated_plugins import SimulatedPlugins

# What is told of a pod's start is written in one go, and not while it starts.
EVENTS_SECONDS = 0.03
_PRETENDED = "sampan.kubelet.simulated.simulated_plugins"
Loop = Callable[[], Awaitable[None]]
Retry = Callable[[str], None]  # of a pod, by its uid


@dataclass(frozen=True, slots=True)
class MachineSide:
    """What is below the agent."""

    machine: Machine
    facts: NodeFacts
    cgroups: Cgroups | None
    volumes: Volumes
    check: Check  # how probes look
    image_access: ImageAccess
    is_real: bool = True  # it has disks and memory that fill up
    plugins: Plugins | None = None


@dataclass(frozen=True, slots=True)
class ApiSide:
    """What is above the agent."""

    recorder: EventRecorder
    services: Services
    loops: tuple[tuple[str, Loop], ...] = ()
    is_there: bool = True


def machine_side(
    context: NodeContext, objects: TrackedObjects, retry: Retry, tell: RecordWarning
) -> MachineSide:
    """`retry`: something that the pod waits for has changed. `tell`: of warnings."""
    certificates = ProjectedCertificates(context, retry, tell)
    make = _simulated_side if context.settings.simulated else _real_side
    return make(context, objects, retry, certificates)


def _real_side(
    context: NodeContext,
    objects: TrackedObjects,
    retry: Retry,
    certificates: ProjectedCertificates,
) -> MachineSide:
    settings = context.settings
    machine = _real_machine(settings)
    if settings.fail_swap_on and machine.swap_bytes:
        raise CannotManage(
            "running with swap on is not supported, please disable swap or set --fail-swap-on flag "
            "to false"
        )
    cgroups = _cgroups_of(settings, machine)
    facts = replace(
        facts_of(settings, machine),
        page_sizes=_page_sizes(machine, cgroups),
        swap=_swap_of(settings, machine, cgroups),
    )
    plugins = None if settings.standalone else NodePlugins(context, machine)
    return MachineSide(
        machine,
        facts,
        cgroups,
        NodeVolumes(
            client=context.client,
            objects=objects,
            changed=retry,
            node=facts,
            clock=context.clock,
            rng=context.rng,
            certificates=certificates,
            operations=StorageOperations(context.metrics, context.clock),
            csi=plugins.csi if plugins is not None else None,
        ),
        NodeCheck(context.runtime),
        ImageAccess(
            f"{settings.root_dir}/image_manager",
            settings.image_verification,
            settings.unverified_images,
        ),
        plugins=plugins,
    )


def _simulated_side(
    context: NodeContext,
    objects: TrackedObjects,
    retry: Retry,
    certificates: ProjectedCertificates,
) -> MachineSide:
    settings = context.settings
    machine = _simulated_machine(settings)
    facts = facts_of(settings, machine)
    plugins = _pretended_plugins(context) if settings.pretence.is_any else None
    mounting = plugins.mounting if plugins is not None else None
    return MachineSide(
        machine,
        facts,
        None,
        SimulatedVolumes(
            objects=objects, changed=retry, node=facts, certificates=certificates, csi=mounting
        ),
        ScriptedCheck(context.runtime, settings.scenario),
        ImageAccess(""),
        is_real=False,
        plugins=plugins,
    )


def _pretended_plugins(context: NodeContext) -> "SimulatedPlugins":
    """Few nodes have any."""
    made: SimulatedPlugins = import_module(_PRETENDED).SimulatedPlugins(context)
    return made


def api_side(context: NodeContext) -> ApiSide:
    return (_standalone if context.settings.standalone else _connect)(context)


def _connect(context: NodeContext) -> ApiSide:
    recorder = EventRecorder(
        context.client,
        "kubelet",
        clock=context.clock,
        host=context.settings.node_name,
        rng=context.rng,
    )
    if context.settings.simulated:
        return ApiSide(recorder, _no_services)  # nobody reads a simulated container's environment
    recorder.gather_seconds = EVENTS_SECONDS
    services = Informer(context.client, Selection(SERVICES), clock=context.clock, rng=context.rng)

    async def all_services() -> Iterable[Obj]:
        await services.synced()
        return services.cache.all()

    return ApiSide(recorder, all_services, (("services", services.run),))


def _standalone(context: NodeContext) -> ApiSide:
    """Events are lines of the log."""
    recorder = EventLog(
        context.client,
        "kubelet",
        clock=context.clock,
        host=context.settings.node_name,
        rng=context.rng,
    )
    return ApiSide(recorder, _no_services, is_there=False)


async def _no_services() -> Iterable[Obj]:
    return ()


API = "api"


def sources_of(settings: KubeletSettings) -> list[str]:
    """All of them must have spoken before anything is cleaned up."""
    there = {
        API: not settings.standalone,
        FILE: bool(settings.manifests),
        HTTP: bool(settings.manifest_url),
    }
    return [source for source, wanted in there.items() if wanted]


def _cgroups_of(settings: KubeletSettings, machine: Machine) -> Cgroups | None:
    """None: the runtime puts containers where it likes, and pods have no limits of their own."""
    if not settings.cgroup_root:
        return None
    hierarchies = find_hierarchies()
    if hierarchies is None:
        raise CgroupFailure("this machine has no cgroups for cpu and memory")
    cgroups = Cgroups(
        settings.cgroup_root,
        hierarchies,
        bounds=PodBounds(settings.pod_pids_limit, settings.cpu_quota, settings.cpu_period),
        driver=settings.cgroup_driver,
        runtime_name=settings.runtime_name,
        room=_room_of_pods(settings, machine) if "pods" in settings.enforce_allocatable else None,
    )
    cgroups.prepare()
    return cgroups


def _page_sizes(machine: Machine, cgroups: Cgroups | None) -> tuple[str, ...]:
    """Of huge pages, where the kernel counts who has them."""
    if cgroups is None or not cgroups.counts_pages():
        return ()
    return tuple(page_size(f"hugepages-{size}") for size in machine.hugepages)


def _swap_of(settings: KubeletSettings, machine: Machine, cgroups: Cgroups | None) -> Swap | None:
    """As upstream: with version 2 of cgroups, and where the kernel counts swap."""
    if cgroups is None or not cgroups.counts_swap():
        return None
    return Swap(machine.swap_bytes, settings.limited_swap)


def _room_of_pods(settings: KubeletSettings, machine: Machine) -> Limits:
    """What all pods together may use: as upstream, evictions begin before that is reached."""
    asked = settings.reserved
    return Limits(
        cpu_shares=shares_of(machine.capacity.cpu_milli - asked.cpu_milli),
        memory_bytes=machine.capacity.memory_bytes - asked.memory_bytes,
        pids=0,
        hugepages={
            page_size(f"hugepages-{size}"): total for size, total in machine.hugepages.items()
        },
    )


def _real_machine(settings: KubeletSettings) -> Machine:
    found = read_machine(settings.root_dir, settings.capacity)
    if settings.capacity is not None:
        return found
    return replace(found, capacity=less_reserved(found.capacity, settings))


def _simulated_machine(settings: KubeletSettings) -> Machine:
    return _machine_with(settings.capacity or SIMULATED.capacity)


@by_identity(64)
def _machine_with(capacity: Capacity) -> Machine:
    """The same for all nodes that have the same."""
    return Machine(capacity, kernel_version=SIMULATED.kernel_version, os_image=SIMULATED.os_image)


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
        pretends=settings.simulated,
        selinux=settings.selinux,
        cpu_quota=settings.cpu_quota,
        cpu_period=settings.cpu_period,
        oom_group=settings.oom_group,
    )

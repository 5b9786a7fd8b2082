"""PodTools and PodState: what the sync loop, the steps of a pod and the performer share.

Job: two values instead of a dozen arguments: what they act with, and what they know and tell.
"""

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.cgroup_thread import CgroupThread
from sampan.kubelet.contracts.volumes_hook import Volumes
from sampan.kubelet.pods.allocation import Allocations
from sampan.kubelet.pods.hooks import Hooks
from sampan.kubelet.pods.kill import Killer
from sampan.kubelet.pods.mirror import Mirrors
from sampan.kubelet.pods.start_at_once import StartAtOnce
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.runtime.observed import Observations
from sampan.kubelet.runtime.pod_logs import PodLogs
from sampan.kubelet.status.recorder import PodEvents
from sampan.kubelet.status.status_manager import StatusManager


@dataclass(frozen=True, slots=True)
class PodTools:
    """What acts on a pod."""

    killer: Killer
    hooks: Hooks
    volumes: Volumes
    events: PodEvents
    at_once: StartAtOnce
    cgroups: CgroupThread | None  # None: the runtime's own
    logs: PodLogs
    resources: ResourceAdmission | None = None  # None: nothing is given to containers of their own


@dataclass(frozen=True, slots=True)
class PodState:
    """What is known of pods: observed, reported, mirrored, allocated."""

    observations: Observations
    status_manager: StatusManager
    mirrors: Mirrors
    allocations: Allocations

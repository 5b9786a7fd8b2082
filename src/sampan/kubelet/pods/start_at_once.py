"""A whole pod in one step, where nothing can hold it up.

Job: have the runtime start it so, where it can; count what was started, under upstream's names.
Invariant: only where nobody is told of the steps, and every image is everybody's.
Owner: PodSync asks it first, of a pod of which nothing was begun.
"""

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pods import containers
from sampan.core.metrics import Metrics
from sampan.kubelet.context import LANE, NodeContext
from sampan.kubelet.contracts.runtime import Role
from sampan.kubelet.images.access import ImageAccess

# The container_type of upstream's metrics.
TYPES = {
    Role.INIT: "init_container",
    Role.SIDECAR: "init_container",
    Role.NORMAL: "container",
    Role.EPHEMERAL: "ephemeral_container",
}


class Started:
    """How much was started."""

    __slots__ = ("containers", "pods")

    def __init__(self, metrics: Metrics) -> None:
        self.pods = metrics.counter(
            "kubelet_started_pods_total", "Cumulative number of pods started"
        )
        self.containers = metrics.counter(
            "kubelet_started_containers_total",
            "Cumulative number of containers started",
            ("container_type",),
        )


class StartAtOnce:
    __slots__ = ("_access", "_log_root", "_start", "_started", "_traces")

    def __init__(self, context: NodeContext, access: ImageAccess) -> None:
        self._access, self._log_root = access, context.settings.log_dir
        self._start = None if context.settings.routine_events else context.start_at_once
        self._started, self._traces = Started(context.metrics), context.metrics.traces

    def start(self, pod: Obj) -> bool:
        """Does the whole pod run from now on? Only a simulated one can; what needs any care does
        not."""
        if self._start is None or self._access.keeps_secrets:
            return False
        began = self._traces.now()
        if not self._start(pod, self._log_root):
            return False
        self._traces.span(uid_of(pod), LANE, "start at once", began)
        self._started.pods.add()
        for _ in containers(pod):
            self._started.containers.add(TYPES[Role.NORMAL])
        return True

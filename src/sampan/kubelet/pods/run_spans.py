"""How long containers ran, for a pod's trace: what the runtime says of those that ended.

Job: each container that ended, once, as a span from its start to its end with its exit code.
Invariant: nothing is remembered of a pod that is forgotten.
Owner: PodSync.
"""

from sampan.core.telemetry.spans import TOP, Span
from sampan.core.telemetry.traces import Traces
from sampan.kubelet.context import LANE
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod


class RunSpans:
    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._noted: dict[str, frozenset[str]] = {}  # by pod uid: the ids of ended containers

    def note(self, uid: str, observed: ObservedPod | None) -> None:
        if observed is None or not self._traces.is_on:
            return
        ended = [each for each in observed.containers if each.state is ContainerState.EXITED]
        noted = self._noted.get(uid, frozenset())
        for container in reversed(ended):
            if container.id not in noted:
                self._note_run(uid, container)
        if ended:
            self._noted[uid] = frozenset(container.id for container in ended)
        elif noted:
            del self._noted[uid]

    def forget(self, uid: str) -> None:
        self._noted.pop(uid, None)

    def _note_run(self, uid: str, container: ContainerStatus) -> None:
        if container.started_at <= 0 or container.finished_at <= 0:
            return
        # containerd takes the time of the start when the call is back: a command that ends at once
        # has ended before that, on its clock.
        started = min(container.started_at, container.finished_at)
        facts = {"exit code": str(container.exit_code)}
        if container.reason and container.reason != "Completed":
            facts["error"] = container.reason
        ran = Span(LANE, f"{container.name} ran", started, container.finished_at, TOP, facts)
        self._traces.add(uid, ran)

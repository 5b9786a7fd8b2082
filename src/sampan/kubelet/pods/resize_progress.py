"""Progress of resizes: what containers have by now, and when all have what they were given.

Job: keep what a resize gave to running containers; tell of its error and of its completion.
Invariant: a resize is complete when no container that runs is left to change, whatever else is
    still to be done to the pod.
Owner: PodSync.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj, meta_of, uid_of
from sampan.core.fast_dataclass import replace
from sampan.kubelet.contracts.resize_state import WHOLE, Applied, Resources
from sampan.kubelet.contracts.spec import pod_level_resources
from sampan.kubelet.pods.allocation import Allocations, resize_text
from sampan.kubelet.pods.planning.actions import Action, Resize
from sampan.kubelet.pods.resizing import Resized
from sampan.kubelet.status.recorder import PodEvents


class ResizeProgress:
    def __init__(self, allocations: Allocations, events: PodEvents) -> None:
        self._allocations, self._events = allocations, events
        self._applied: dict[str, dict[str, Resources]] = {}  # by uid, then by container id

    def applied(self, uid: str) -> Applied:
        return self._applied.get(uid) or _NOTHING

    def begins(self, pod: Obj, *, new: bool) -> None:
        """What the pod as a whole has: where nothing of it is there yet, what it was given; what an
        agent before this one came to nobody knows."""
        uid, whole = uid_of(pod), pod_level_resources(pod)
        if whole and WHOLE not in self.applied(uid):
            self._applied.setdefault(uid, {})[WHOLE] = whole if new else {}

    def forget(self, uid: str) -> None:
        self._applied.pop(uid, None)

    def note(self, pod: Obj, done: Resized | None) -> None:
        uid = uid_of(pod)
        if done is None:
            return
        self._applied.setdefault(uid, {}).update(done.applied)
        resizing = self._allocations.in_progress.get(uid)
        if resizing is not None and resizing.error != done.error:
            self._allocations.in_progress[uid] = replace(resizing, error=done.error)
            if done.error:
                text = resize_text(pod, resizing.generation, done.error)
                self._events.warning(pod, "ResizeError", f"Pod resize error: {text}")

    def completes(self, pod: Obj, actions: Sequence[Action]) -> bool:
        """Is the resize of this pod over with what is planned now? Said once."""
        resizing = self._allocations.in_progress.get(uid_of(pod))
        if resizing is None or any(isinstance(action, Resize) for action in actions):
            return False
        # One that was granted while this step went on is the next step's.
        if int(meta_of(pod).get("generation") or 0) < resizing.generation:
            return False
        del self._allocations.in_progress[uid_of(pod)]
        text = resize_text(pod, resizing.generation)
        self._events.normal(pod, "ResizeCompleted", f"Pod resize completed: {text}")
        return True


_NOTHING: Mapping[str, Resources] = {}

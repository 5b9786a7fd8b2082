"""Events about pods, in the node's name.

Job: name the pod, or one of its containers, as the subject, and hand the event to the recorder.
"""

from sampan.api.objects import Obj
from sampan.client.events import EventRecorder, reference
from sampan.kubelet.spec import field_path


class PodEvents:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def normal(self, pod: Obj, reason: str, message: str, *, container: str = "") -> None:
        self._recorder.record(_about(pod, container), "Normal", reason, message)

    def warning(self, pod: Obj, reason: str, message: str, *, container: str = "") -> None:
        self._recorder.record(_about(pod, container), "Warning", reason, message)

    def emit(self, pod: Obj, kind: str, reason: str, message: str, container: str) -> None:
        """For parts that choose Normal or Warning themselves."""
        self._recorder.record(_about(pod, container), kind, reason, message)


def _about(pod: Obj, container: str) -> Obj:
    about = reference(pod, field_path(pod, container) if container else "")
    # What comes out of a list has neither kind nor version.
    return {**about, "kind": "Pod", "apiVersion": "v1"}

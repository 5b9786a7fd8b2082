"""Events about pods, in the node's name.

Job: name the pod, or one of its containers, as the subject, and hand the event to the recorder.
"""

from sampan.api.objects import Obj
from sampan.client.events import EventRecorder, reference
from sampan.core.log import get_logger
from sampan.kubelet.contracts.spec import field_path

log = get_logger(__name__)


class EventLog(EventRecorder):
    """For a node without an API: its events are lines of the log."""

    def record(
        self,
        about: Obj,
        type: str,  # noqa: A002  # the field's own name
        reason: str,
        message: str,
        *,
        annotations: dict[str, str] | None = None,
    ) -> None:
        say = log.info if type == "Normal" else log.warning
        say("event", about=about.get("name"), reason=reason, message=message)


# What every pod goes through: its status tells as much.
ROUTINE = frozenset({"Pulling", "Pulled", "Created", "Started", "Killing"})


class PodEvents:
    def __init__(self, recorder: EventRecorder, *, without: frozenset[str] = frozenset()) -> None:
        """`without`: reasons of which nothing is told while all goes well."""
        self._recorder, self._without = recorder, without

    def normal(self, pod: Obj, reason: str, message: str, *, container: str = "") -> None:
        self.emit(pod, "Normal", reason, message, container)

    def warning(self, pod: Obj, reason: str, message: str, *, container: str = "") -> None:
        self._recorder.record(_about(pod, container), "Warning", reason, message)

    def emit(self, pod: Obj, kind: str, reason: str, message: str, container: str) -> None:
        """For parts that choose Normal or Warning themselves."""
        if kind == "Normal" and reason in self._without:
            return
        self._recorder.record(_about(pod, container), kind, reason, message)


def _about(pod: Obj, container: str) -> Obj:
    about = reference(pod, field_path(pod, container) if container else "")
    # What comes out of a list has neither kind nor version.
    return {**about, "kind": "Pod", "apiVersion": "v1"}

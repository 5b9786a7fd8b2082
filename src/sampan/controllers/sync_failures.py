"""Sync failures: keys whose sync raised an exception, in log, events and conditions.

Job: tell of it where somebody looks: the log (the traceback once for each error of a key), an event
    about the object, and a condition of it where its kind has some, which `kubectl describe` and
    `sampan why` show. The runner tries the key again, later and later, and goes on with the others.
Invariant: what is remembered is bounded, and forgotten when the key succeeds.
Invariant: the condition is set once, whatever the errors after the first say: each write of it
    wakes the controller.
"""

from collections.abc import Callable, Iterable

from sampan.api.objects import Obj
from sampan.api.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBS,
    POD_DISRUPTION_BUDGETS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from sampan.api.rules.conditions import condition_of, with_condition, without_condition
from sampan.client.events import EventRecorder, reference
from sampan.controllers.actions import Patch, merge_patch
from sampan.controllers.controller import Key
from sampan.core.bounded import Bounded
from sampan.core.log import get_logger

log = get_logger(__name__)

MOST_TOLD = 1000
LONGEST_TEXT = 300  # of an error
REASON = "FailedSync"
CONDITION = "SyncFailed"
# Kinds with `status.conditions` of any type.
_WITH_CONDITIONS = frozenset(
    (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, REPLICATION_CONTROLLERS, JOBS,
     HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS)
)  # fmt: skip


class SyncFailures:
    def __init__(
        self,
        controller: str,
        kinds: Iterable[Resource],
        lookup: Callable[[Resource, str], Obj | None],
        recorder: EventRecorder,
    ) -> None:
        """`kinds`: of the objects that its keys may name, its own first."""
        self._controller, self._kinds, self._lookup = controller, tuple(kinds), lookup
        self._recorder = recorder
        self._told: Bounded[Key, str] = Bounded(MOST_TOLD)
        self._beginning = f"Error syncing by {controller},"
        self._marks = not _WITH_CONDITIONS.isdisjoint(self._kinds)

    def failed(self, key: Key, error: Exception, now: float) -> Patch | None:
        """What is to be written for it."""
        text = f"{type(error).__name__}: {error}"[:LONGEST_TEXT]
        if self._told.get(key) == text:
            log.warning("error syncing again", controller=self._controller, key=key, error=text)
        else:
            log.bug("error syncing", error, controller=self._controller, key=key)
            self._told[key] = text
        kind, obj = self._object_of(key)
        if obj is None or kind is None:
            return None
        said = f"{self._beginning} will try again: {text}"
        self._recorder.record(reference(obj), "Warning", REASON, said)
        if kind not in _WITH_CONDITIONS or condition_of(obj, CONDITION) is not None:
            return None
        told = {"type": CONDITION, "status": "True", "reason": REASON, "message": said}
        return _with_conditions(kind, obj, with_condition(_conditions(obj), told, now))

    def succeeded(self, key: Key) -> Patch | None:
        """What is to be written for it: also where another process had failed."""
        self._told.pop(key, None)
        if not self._marks:
            return None
        kind, obj = self._object_of(key)
        if obj is None or kind is None:
            return None
        told = (condition_of(obj, CONDITION) or {}).get("message") or ""
        if not told.startswith(self._beginning):
            return None  # there is none, or another controller fails
        return _with_conditions(kind, obj, without_condition(_conditions(obj), CONDITION))

    def _object_of(self, key: Key) -> tuple[Resource | None, Obj | None]:
        names = [part for part in (key if isinstance(key, tuple) else (key,)) if _is_name(part)]
        found = ((kind, self._lookup(kind, name)) for name in names for kind in self._kinds)
        return next(((kind, obj) for kind, obj in found if obj is not None), (None, None))


def _conditions(obj: Obj) -> list[Obj]:
    return (obj.get("status") or {}).get("conditions") or []


def _with_conditions(kind: Resource, obj: Obj, conditions: list[Obj]) -> Patch:
    """Of the object as it was seen: conditions are a list, which is written whole."""
    return merge_patch(kind, obj, {"status": {"conditions": conditions}}, "status")


def _is_name(part: object) -> bool:
    return isinstance(part, str) and bool(part)

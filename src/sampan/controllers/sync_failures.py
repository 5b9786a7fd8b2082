"""Keys at which a controller itself fails: a bug of ours, or an object that nobody thought of.

Job: tell of it where somebody looks: the log (the traceback once for each error of a key), and an
    event about the object, which `kubectl describe` and `sampan why` show. The runner tries the key
    again, later and later, and goes on with the others.
Invariant: what is remembered is bounded, and forgotten when the key succeeds.
"""

from collections.abc import Callable, Iterable

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.client.events import EventRecorder, reference
from sampan.controllers.controller import Key
from sampan.core.bounded import Bounded
from sampan.core.log import get_logger

log = get_logger(__name__)

MOST_TOLD = 1000
LONGEST_TEXT = 300  # of an error
REASON = "FailedSync"


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

    def failed(self, key: Key, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"[:LONGEST_TEXT]
        if self._told.get(key) == text:
            log.warning("error syncing again", controller=self._controller, key=key, error=text)
        else:
            log.bug("error syncing", error, controller=self._controller, key=key)
            self._told[key] = text
        obj = self._object_of(key)
        if obj is not None:
            said = f"Error syncing by {self._controller}, will try again: {text}"
            self._recorder.record(reference(obj), "Warning", REASON, said)

    def succeeded(self, key: Key) -> None:
        self._told.pop(key, None)

    def _object_of(self, key: Key) -> Obj | None:
        names = [part for part in (key if isinstance(key, tuple) else (key,)) if _is_name(part)]
        found = (self._lookup(kind, name) for name in names for kind in self._kinds)
        return next((obj for obj in found if obj is not None), None)


def _is_name(part: object) -> bool:
    return isinstance(part, str) and bool(part)

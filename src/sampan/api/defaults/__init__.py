"""Fill in what the caller left out. The entry point, and the table of the kinds' own defaults.

Job: look up the kind's defaults and apply them, in place: the object is the caller's own copy.
Invariant: idempotent, and never raises: what has the wrong shape is left for validation to refuse.
To add a kind: a file beside this one, and a line in the table.
"""

from collections.abc import Callable
from contextlib import suppress

from sampan.api.defaults import pod
from sampan.api.objects import Obj
from sampan.api.resources import Resource

_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)

_TABLE: dict[tuple[str, str, str], Callable[[Obj], None]] = {
    ("", "v1", "Pod"): pod.default_pod,
}


def apply_defaults(resource: Resource, obj: Obj) -> None:
    default = _TABLE.get((resource.group, resource.version, resource.kind))
    if default is None:
        return
    with suppress(*_MALFORMED):
        default(obj)

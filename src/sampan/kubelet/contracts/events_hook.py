"""Events of a part of the node, about any object."""

from collections.abc import Callable

from sampan.api.objects import Obj

# (reference to the object, Normal | Warning, reason, message)
RecordEvent = Callable[[Obj, str, str, str], None]


def nobody(_about: Obj, _kind: str, _reason: str, _message: str) -> None:
    """Nobody listens."""

"""Waiting for objects: until they are gone, until a condition holds.

Job: read, watch, read again, until it is as wanted or the time is over.
"""

import time
from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.objects.selection import Info
from sampan.cli.session import Session

PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0


def until(
    session: Session, path: str, is_met: Callable[[Obj | None], bool], seconds: float
) -> bool:
    """Whether it was met in time; `is_met` gets None while the object does not exist."""
    deadline = session.clock.monotonic() + seconds
    pause = PAUSE_SECONDS
    while True:
        try:
            obj: Obj | None = session.api.json("GET", path)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            obj = None
        if is_met(obj):
            return True
        left = deadline - session.clock.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def until_gone(session: Session, info: Info, uid: str, seconds: float) -> None:
    """Gone, or another object of the same name in its place."""

    def is_gone(obj: Obj | None) -> bool:
        return obj is None or (bool(uid) and obj["metadata"].get("uid") != uid)

    if not until(session, info.path, is_gone, seconds):
        raise CliError(f"timed out waiting for the condition on {info.resource.plural}/{info.name}")

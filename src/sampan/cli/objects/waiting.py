"""Waiting for objects: until they are gone, until a condition holds.

Job: read, then watch, until it is as wanted or the time is over.
Invariant: what is true for a moment only is seen, where the user may watch.
"""

import time
from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
Check = Callable[[Obj | None], bool]


def until(session: Session, path: str, is_met: Check, seconds: float) -> bool:
    """Whether it was met in time; `is_met` gets None while the object does not exist."""
    deadline = session.clock.monotonic() + seconds
    while True:
        try:
            if _watched(session, path, is_met, deadline):
                return True
        except ApiError as error:
            if error.reason not in ("Forbidden", "NotFound", "MethodNotAllowed", "Expired"):
                raise
            if error.reason != "Expired":  # who may not watch asks again and again
                return poll(session, path, is_met, deadline - session.clock.monotonic())
        if session.clock.monotonic() >= deadline:
            return False


def _watched(session: Session, path: str, is_met: Check, deadline: float) -> bool:
    """By one list and the watch after it; False when the server ended it, or the time is over."""
    kind, _, name = path.rpartition("/")
    query = {"fieldSelector": f"metadata.name={name}"}
    answer = session.api.json("GET", kind, query)
    if is_met(next(iter(answer.get("items") or []), None)):
        return True
    left = deadline - session.clock.monotonic()
    if left <= 0:
        return False
    query["resourceVersion"] = answer["metadata"].get("resourceVersion") or ""
    for event, obj in session.api.watch(kind, query, seconds=left):
        if event != "BOOKMARK" and is_met(None if event == "DELETED" else obj):
            return True
    return False


def poll(session: Session, path: str, is_met: Check, seconds: float) -> bool:
    """The same by asking again and again."""
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

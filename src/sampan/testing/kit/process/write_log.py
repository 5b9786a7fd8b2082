"""Every write of a cluster, in order.

Job: follow the store; one line for each write: revision, verb, key, a digest of what was written.
Invariant: none is missing, none twice; two clusters with the same lines have the same history.
"""

import hashlib
from pathlib import Path

from sampan.core.tasks import Tasks
from sampan.store.contract import Change, Store

ROOT = "/registry/"
DIGEST_DIGITS = 12


class WriteLog:
    def __init__(self, store: Store) -> None:
        self._watch = store.watch("", store.revision)
        self._lines: list[str] = []
        self._tasks = Tasks("write log")
        self._tasks.start("follow", self._follow())

    def save(self, path: Path) -> None:
        """Up to now, where everybody has been given the time to be told."""
        path.write_text("".join(f"{line}\n" for line in self._lines))

    async def _follow(self) -> None:
        async for changes in self._watch:
            self._lines += map(_line, changes)


def _line(change: Change) -> str:
    entry, what = change.entry, change.key.removeprefix(ROOT)
    if entry is None:
        return f"{change.revision} delete {what}"
    verb = "create" if entry.create_revision == entry.revision else "update"
    digest = hashlib.sha256(entry.value).hexdigest()[:DIGEST_DIGITS]
    return f"{change.revision} {verb} {what} {digest}"

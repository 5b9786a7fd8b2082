"""How made-up devices are, from a file: for whoever wants to see one turn sick.

Job: read a JSON file, device → Healthy | Unhealthy; tell when it changes.
Invariant: what cannot be read says nothing: all devices are well.
"""

import asyncio
import json
from pathlib import Path

from sampan.core.file_events import FileEvents

LOOK_SECONDS = 60.0


class HealthFile:
    def __init__(self, path: str) -> None:
        """`path` empty: there is none."""
        self._path = path
        self._changed = asyncio.Event()

    def read(self) -> dict[str, str]:
        """What is said of devices; nothing is said of the others. Blocking, and short."""
        if not self._path:
            return {}
        try:
            found: dict[str, str] = json.loads(Path(self._path).read_text() or "{}")
        except (OSError, ValueError):
            return {}
        return found

    def next_change(self) -> asyncio.Event:
        """Set when the file changes after now."""
        return self._changed

    async def watch(self) -> None:
        """Until cancelled."""
        events, folder = FileEvents(), str(Path(self._path).parent)
        try:
            while self._path:
                with events.watch(folder) as changes:
                    await changes.wait(LOOK_SECONDS)
                self._changed.set()
                self._changed = asyncio.Event()
            await asyncio.get_running_loop().create_future()
        finally:
            events.close()

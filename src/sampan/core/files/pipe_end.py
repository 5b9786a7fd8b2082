"""One end of a pipe, for a loop's transport.

Job: be the file that connect_read_pipe and connect_write_pipe take.
Invariant: a descriptor is closed once: at a second time its number may be another thread's file.
"""

import asyncio
import os
from typing import IO


class PipeEnd:
    """Owns the descriptor, until the transport does."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # uvloop's transports close the descriptor themselves, and then the file, too.
        self._closes = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._closes and self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def own_end(pipe: IO[bytes]) -> PipeEnd:
    """In place of a file, which would close its descriptor once more when nobody has it."""
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    return PipeEnd(descriptor)

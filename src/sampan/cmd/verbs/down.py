"""`sampan down`: ask the process that holds the data directory to stop, and wait for it."""

import contextlib
import os
import signal
import sys
import time

from sampan.cmd.cluster.data_dir import DataDir, DataDirError, find_data_dir, holder

PATIENCE_SECONDS = 60.0


def run(data_dir: str) -> int:
    try:
        data = find_data_dir(data_dir)
    except DataDirError as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    stopped = stop(data)
    print(f"stopped process {stopped}" if stopped else f"nothing runs in {data.root}")
    return 0


def stop(data: DataDir) -> int | None:
    """The pid that was stopped; None where nothing ran."""
    pid = holder(data)
    if not pid:
        return None
    with contextlib.suppress(ProcessLookupError):  # killed; what it started is on its way out
        os.kill(pid, signal.SIGTERM)
    waited = 0.0
    while holder(data) == pid:
        # The lock falls when the process ends; there is no event for a process that is not a child.
        time.sleep(0.02)
        waited += 0.02
        if waited > PATIENCE_SECONDS:
            raise TimeoutError(f"process {pid} did not stop within {PATIENCE_SECONDS:.0f} s")
    return pid

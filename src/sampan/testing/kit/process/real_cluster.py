"""A process with one cluster whose node is this machine.

Job: start it, do what the control socket asks for, stop it, and remove what it left on the machine.
Invariant: it ends when its control socket does, in order: no container, mount or interface stays.
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, open_data_dir
from sampan.cmd.errors import CannotStart as NoCluster
from sampan.cmd.verbs.reset import remove
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.testing.kit import messages
from sampan.testing.kit.kit_files import DATA
from sampan.testing.kit.process.commands import actions_of
from sampan.testing.kit.process.control_end import ControlEnd
from sampan.testing.kit.process.real_plane import RealPlane
from sampan.testing.kit.process.releases import use_release_of
from sampan.testing.kit.spec import CannotStart, spec_of


def main(descriptor: int, directory: Path) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end comes through the socket
    control = socket.socket(fileno=descriptor)
    heard = messages.receive(control)
    if heard is None:
        return
    request, _ = heard
    data = open_data_dir(str(directory / DATA))
    lock = Lock.take(data)
    loop = SteppedLoop(virtual=False)
    asyncio.set_event_loop(loop)
    plane: RealPlane | None = None
    try:
        spec = spec_of(request["spec"])
        use_release_of(spec)
        plane = RealPlane(spec, data, request["seed"])
        loop.run_until_complete(plane.cluster.start())
        messages.send(
            control, {"id": request["id"], "port": data.record()["port"], "pid": os.getpid()}
        )
        _hold(loop, plane, control)
    except (ApiError, CannotStart, DataDirError, NoCluster, OSError) as error:
        messages.send(control, {"id": request["id"], "error": " ".join(str(error).split())})
    finally:
        if plane is not None:
            _end(loop, plane, data)
        lock.release()
        shutil.rmtree(directory, ignore_errors=True)


def _hold(loop: SteppedLoop, plane: RealPlane, control: socket.socket) -> None:
    ControlEnd(loop, control, actions_of(plane, loop), loop.stop).follow()
    loop.add_signal_handler(signal.SIGTERM, loop.stop)  # of a cluster that was kept
    loop.run_forever()
    plane.guarded.kill()


def _end(loop: SteppedLoop, plane: RealPlane, data: DataDir) -> None:
    loop.run_until_complete(_stop(plane))
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()
    remove(data)


async def _stop(plane: RealPlane) -> None:
    plane.cluster.hurry()  # no test waits for containers that nobody looks at any more
    await plane.cluster.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

"""The first process of the kit: it has everything imported, and everybody else is its child.

Job: fork a process for each template (and for each cluster that cannot be forked from one).
Invariant: no thread is ever started here; what it forks begins with one thread and a clean loop.
Owner: the process whose tests want clusters; it ends with it, and removes the directory of both.
"""

import gc
import os
import shutil
import signal
import socket
import sys
import threading
from pathlib import Path

from sampan.api.schema.published import Schema
from sampan.cmd.errors import CannotStart as NoCluster
from sampan.core.clock import SystemClock
from sampan.core.virtual_time.loop import SteppedLoop, VirtualClock
from sampan.testing.kit import messages
from sampan.testing.kit.kit_files import KEPT, KEYS
from sampan.testing.kit.process import member
from sampan.testing.kit.process.control_end import Message
from sampan.testing.kit.process.plane import Plane, ensure_pki
from sampan.testing.kit.process.releases import use_release_of
from sampan.testing.kit.process.warm_up import warm_up
from sampan.testing.kit.spec import CannotStart, spec_of


def main(descriptor: int, base: Path) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end comes through the socket
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how its children ended
    gc.disable()
    control = socket.socket(fileno=descriptor)
    ensure_pki(base / KEYS)
    schema = Schema.load()
    warm_up(base / "warm", base / KEYS, schema)
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()  # told to end; a fork beside it would not have it
    gc.collect()
    gc.freeze()
    messages.send(control, {"id": 0})
    while (heard := messages.receive(control)) is not None:
        request, enclosed = heard
        assert enclosed is not None
        if os.fork() == 0:
            control.close()
            _hold_cluster(request, enclosed, base / KEYS, schema)
        enclosed.close()
    if not (base / KEPT).exists():
        shutil.rmtree(base, ignore_errors=True)


def _hold_cluster(request: Message, control: socket.socket, keys: Path, schema: Schema) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL if request["serves"] else signal.SIG_IGN)
    try:
        spec = spec_of(request["spec"])
        use_release_of(spec)
        member.take_place(Path(request["dir"]))
        loop = SteppedLoop(virtual=spec.virtual)
        clock = VirtualClock(loop) if spec.virtual else SystemClock()
        plane = Plane(spec, keys, Schema.load() if spec.version else schema, clock)
        plane.rng.seed(request["seed"])
        member.start(loop, plane, keys)
    except (CannotStart, NoCluster, OSError) as error:
        messages.send(control, {"id": request["id"], "error": " ".join(str(error).split())})
        os._exit(1)
    process = member.Member(loop, plane, control)
    if request["serves"]:
        process.serve(request)
    else:
        messages.send(control, {"id": request["id"]})
    process.run()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

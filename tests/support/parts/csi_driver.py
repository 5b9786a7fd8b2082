"""`sampan driver csi` beside a real node: a process of its own, that a test may kill.

Job: start it so that it registers at the node's kubelet, make volumes with it, kill or stop it.
"""

import asyncio
import json
from pathlib import Path

from sampan.drivers.csi.settings import NAME
from sampan.plugins.csi import CsiSocket
from tests.support.parts.processes import Program
from tests.support.parts.sampan_process import environment, sampan_command
from tests.support.worlds.csi_node import make_volume


class CsiDriverProcess:
    def __init__(self, kubelet: Path, root: Path, *flags: str) -> None:
        """`kubelet`: its directory; `root`: the driver's own."""
        self.root, self.flags = root, flags
        self.endpoint = kubelet / "plugins" / NAME / "csi.sock"
        self.registration = kubelet / "plugins_registry" / f"{NAME}-reg.sock"
        self.faults = root / "faults.json"
        self.program: Program | None = None

    def start(self, node: str) -> "CsiDriverProcess":
        ready = self.root / "ready"
        ready.unlink(missing_ok=True)
        self.program = Program(
            [
                *sampan_command("driver"), "csi", "--endpoint", str(self.endpoint),
                "--registration", str(self.registration), "--node-id", node,
                "--root", str(self.root / "volumes"), "--faults", str(self.faults),
                "--ready-file", str(ready), "--log-level", "info", *self.flags,
            ],
            self.root / "driver.out",
            environment(),
        )  # fmt: skip
        self.program.wait_until(ready.exists, 60)
        return self

    def fail(self, **faults: object) -> None:
        self.faults.write_text(json.dumps(faults))

    def make(self, name: str, *, block: bool = False, **parameters: str) -> None:
        async def ask() -> None:
            socket = CsiSocket(str(self.endpoint))
            try:
                await make_volume(socket, name, block=block, **parameters)
            finally:
                await socket.close()

        asyncio.run(ask())

    def stop(self) -> None:
        if self.program is not None:
            self.program.stop()

    def kill(self) -> None:
        """Its sockets stay, as after any kill."""
        assert self.program is not None
        self.program.kill()

"""The way from a network namespace of an ordinary user to the machine's network.

Job: which program moves the packets, and its words. Pure, but for looking for the program.
Invariant: what runs inside does not reach what listens on the machine's loopback addresses.
"""

import shutil
from collections.abc import Sequence

from sampan.cmd.rootless.host_side import READY
from sampan.core.fast_dataclass import dataclass

INTERFACE = "tap0"
_MTU = 65520  # of a cable that is none


@dataclass(frozen=True, slots=True)
class Uplink:
    program: str
    name_servers: Sequence[str]

    def words(self, pid: int) -> list[str]:
        """`pid`: a process in the namespace."""
        return [
            self.program, "--configure", f"--mtu={_MTU}", "--disable-host-loopback",
            f"--ready-fd={READY}", str(pid), INTERFACE,
        ]  # fmt: skip


def find_uplink() -> Uplink | None:
    """slirp4netns answers names at an address of its own, whatever the machine's resolver is."""
    program = shutil.which("slirp4netns")
    return Uplink(program, ("10.0.2.3",)) if program else None

"""The way from a network namespace of an ordinary user to the machine's network.

Job: which program moves the packets, and its words. Pure, but for looking for the program.
Invariant: what runs inside does not reach what listens on the machine's loopback addresses.
Invariant: the node has the same addresses inside, whichever program it is: a cluster may be started
    again by the other one.
"""

import shutil
from collections.abc import Sequence

from sampan.cmd.rootless.host_side import PID_FILE, READY
from sampan.core.fast_dataclass import dataclass

PROGRAMS = ("slirp4netns", "pasta")  # the first that is there
INTERFACE = "tap0"
_MTU = 65520  # of a cable that is none
# Those of slirp4netns: names are answered at an address of their own, whatever the machine's
# resolver is.
_NODE, _GATEWAY, _NAMES = "10.0.2.100", "10.0.2.2", "10.0.2.3"


@dataclass(frozen=True, slots=True)
class Uplink:
    program: str
    own_words: Sequence[str]
    name_servers: Sequence[str] = (_NAMES,)

    def arguments(self, pid: int) -> list[str]:
        """`pid`: a process in the namespace."""
        return [self.program, *(word.replace("{target}", str(pid)) for word in self.own_words)]


_SLIRP = (
    "--configure", f"--mtu={_MTU}", "--disable-host-loopback", f"--ready-fd={READY}", "{target}",
    INTERFACE,
)  # fmt: skip
_PASTA = (
    "--config-net", "--quiet", "--ipv4-only", f"--ns-ifname={INTERFACE}", f"--mtu={_MTU}",
    f"--address={_NODE}", "--netmask=24", f"--gateway={_GATEWAY}", f"--dns-forward={_NAMES}",
    "--no-map-gw", "--no-dhcp", "--tcp-ports=none", "--udp-ports=none", "--tcp-ns=none",
    "--udp-ns=none", f"--pid={PID_FILE}", "{target}",
)  # fmt: skip


def find_uplink() -> Uplink | None:
    for name, arguments in zip(PROGRAMS, (_SLIRP, _PASTA), strict=True):
        program = shutil.which(name)
        if program is not None:
            return Uplink(program, arguments)
    return None

"""Machines for network tests: network namespaces on one bridge, cut off from the real network.

Job: make them, run programs in them, take them away with all that is in them.
Invariant: nothing that a test sends in them leaves: the bridge is in a namespace of its own, which
    forwards nothing.
"""

import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from sampan.core.fast_dataclass import dataclass

# For examples and tests (RFC 5737, RFC 3849).
NETWORK, NETWORK_IPV6 = "198.51.100", "2001:db8::"


@dataclass(frozen=True, slots=True)
class Machine:
    namespace: str
    number: int = 0

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number}"

    @property
    def address_ipv6(self) -> str:
        return f"{NETWORK_IPV6}{self.number}"

    @property
    def where(self) -> tuple[str, ...]:
        """What a command starts with to run there. (`ip netns exec` would hide the cgroups.)"""
        return ("nsenter", f"--net=/run/netns/{self.namespace}")

    def run(self, *command: str, seconds: float = 20.0, check: bool = True) -> str:
        done = subprocess.run(
            [*self.where, *command], capture_output=True, text=True, timeout=seconds, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """Each with an address and a default route to the bridge, where nobody goes further."""
    with ExitStack() as undo:
        # Several of them may be there at once, of one process or of several.
        prefix = f"smp{secrets.token_hex(3)}"
        hub = _namespace(undo, f"{prefix}hub")
        hub.run("ip", "link", "add", "br0", "type", "bridge")
        hub.run("ip", "addr", "add", f"{NETWORK}.254/24", "dev", "br0")
        hub.run("ip", "addr", "add", f"{NETWORK_IPV6}254/64", "dev", "br0", "nodad")
        hub.run("ip", "link", "set", "br0", "up")
        found = []
        for number in range(1, count + 1):
            machine = _namespace(undo, f"{prefix}m{number}", number)
            _connect(hub, machine, f"m{number}")
            found.append(machine)
        yield found


def _connect(hub: Machine, machine: Machine, port: str) -> None:
    hub.run(
        "ip", "link", "add", port, "type", "veth",
        "peer", "name", "eth0", "netns", machine.namespace,
    )  # fmt: skip
    hub.run("ip", "link", "set", port, "master", "br0", "up")
    machine.run("ip", "addr", "add", f"{machine.address}/24", "dev", "eth0")
    machine.run("ip", "addr", "add", f"{machine.address_ipv6}/64", "dev", "eth0", "nodad")
    machine.run("ip", "link", "set", "eth0", "up")
    machine.run("ip", "route", "add", "default", "via", f"{NETWORK_IPV6}254")
    machine.run("ip", "route", "add", "default", "via", f"{NETWORK}.254")


def _namespace(undo: ExitStack, name: str, number: int = 0) -> Machine:
    _ip("netns", "add", name)
    undo.callback(_ip, "netns", "del", name)
    machine = Machine(name, number)
    machine.run("ip", "link", "set", "lo", "up")
    return machine


def _ip(*arguments: str) -> None:
    command: Sequence[str] = ["ip", *arguments]
    subprocess.run(command, capture_output=True, check=True)

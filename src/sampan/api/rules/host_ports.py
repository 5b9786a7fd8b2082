"""Host ports: ports of the node that a pod takes for itself.

Job: pod → its host ports, and whether two of them exclude each other. Pure.
Invariant: only containers that go on running hold ports: sidecars do, other init containers do not.
"""

from sampan.api.objects import Obj
from sampan.api.rules.pods import containers, init_containers, is_sidecar
from sampan.core.fast_dataclass import dataclass

ANY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class HostPort:
    protocol: str
    port: int
    address: str

    def conflicts_with(self, other: "HostPort") -> bool:
        """A port on any address conflicts with the same port on every address."""
        return (
            (self.protocol, self.port) == (other.protocol, other.port)
            and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))
        )  # fmt: skip


def host_ports(pod: Obj) -> tuple[HostPort, ...]:
    sidecars = (item for item in init_containers(pod) if is_sidecar(item))
    return tuple(
        HostPort(
            port.get("protocol") or "TCP", int(port["hostPort"]), port.get("hostIP") or ANY_ADDRESS
        )
        for container in (*containers(pod), *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )

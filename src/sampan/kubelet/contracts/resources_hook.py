"""Grants of a container: devices, processors and NUMA nodes beyond its spec.

Job: the values between those who grant them and those who start containers; how they refuse.
"""

from collections.abc import Mapping
from dataclasses import field

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import Device, Mount
from sampan.kubelet.contracts.verdict import Verdict


class PodRefused(Exception):
    """The pod cannot be had on this node."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.verdict = Verdict(reason, f"Pod was rejected: {message}")


def unexpected(why: object) -> PodRefused:
    """As upstream calls what a provider of resources could not do."""
    message = f"Allocate failed due to {why}, which is unexpected"
    return PodRefused("UnexpectedAdmissionError", message)


class ClaimFailure(Exception):
    """A claim cannot be prepared now, or not given back: it is tried again."""


class GrantFailure(Exception):
    """What was granted cannot be had now: the container does not start, and is tried again."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Of one container."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[Device, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()  # vendor.com/class=name
    cpus: str = ""  # a list of processors, as 0-3,7; empty: all
    memory_nodes: str = ""  # likewise, of NUMA nodes
    exclusive_cpus: bool = False  # nobody else runs on them


NO_GRANTS = Grants()

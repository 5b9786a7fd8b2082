"""The result of one probe.

Job: the words that the checks and the probes share.
"""

from typing import Protocol

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.probes.tally import Probe

OUTPUT_BYTES = 10 * 1024  # as upstream: what is kept of an answer or of a command's output


class ProbeError(Exception):
    """Nothing was found out: neither a success nor a failure of the container."""


@dataclass(frozen=True, slots=True)
class Finding:
    success: bool
    output: str = ""
    warning: bool = False  # a success that the user should hear about


@dataclass(frozen=True, slots=True)
class Probed:
    """The container that is looked at."""

    pod: Obj
    container: Obj  # of the spec
    id: str
    address: str  # where its pod is reached


class Check(Protocol):
    async def __call__(self, probe: Probe, about: Probed) -> Finding:
        """Raises ProbeError."""

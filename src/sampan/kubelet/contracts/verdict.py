"""Reason and message of a decision about a pod or a container.

Job: values that admission, eviction, shutdown and the performer hand to the status.
"""

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """The node ended the pod itself: why, in the words of the API."""

    reason: str
    message: str
    disruption: str = ""  # the pod was well: what its DisruptionTarget says


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container is not running yet (again)."""

    reason: str
    message: str = ""

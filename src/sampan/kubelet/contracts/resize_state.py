"""How far a resize of a pod got: what its status tells.

Job: two frozen values; allocation decides them, status shows them.
"""

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pending:
    """A resize that was not granted: yet, or for good."""

    reason: str
    message: str
    generation: int


@dataclass(frozen=True, slots=True)
class InProgress:
    """A resize that was granted, and is being carried out."""

    generation: int
    error: str = ""

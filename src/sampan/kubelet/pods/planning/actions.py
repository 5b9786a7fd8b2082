"""Pod actions: the values that a plan is made of.

Job: one frozen value per thing that may happen to a pod's sandbox and containers. Pure.
"""

from enum import Enum
from typing import TypeAlias

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import Role


class KillReason(Enum):
    """Why a pod is stopped that may run again, or is done."""

    SANDBOX_CHANGED = "sandbox changed"
    ALL_CONTAINERS_ENDED = "all containers ended"
    INIT_CONTAINER_FAILED = "init container failed"


@dataclass(frozen=True, slots=True)
class KillPod:
    """Stop every container, then the sandboxes."""

    why: KillReason


@dataclass(frozen=True, slots=True)
class KillContainer:
    id: str
    name: str
    why: str  # for the event; empty: the plain sentence
    grace_seconds: float | None = None  # the failed probe's own; None: the pod's


@dataclass(frozen=True, slots=True)
class RemoveContainer:
    id: str


@dataclass(frozen=True, slots=True)
class CreateSandbox:
    attempt: int


@dataclass(frozen=True, slots=True)
class HoldBack:
    """The container crashed too often: not before `until`."""

    name: str
    delay_seconds: float
    until: float


@dataclass(frozen=True, slots=True)
class StartContainer:
    name: str
    role: Role
    attempt: int = 0
    streak: int = 0
    # What becomes of it where that moment is still to come: stopping the one before it may take
    # longer than the wait.
    held: HoldBack | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Other cpu or memory for a container that goes on running: 1 grows, -1 shrinks, 0 stays."""

    id: str
    name: str
    memory: int = 0
    cpu: int = 0


@dataclass(frozen=True, slots=True)
class Resize:
    """Other limits for the pod itself, and for those of its containers that go on running."""

    updates: tuple[Update, ...] = ()


Action: TypeAlias = (
    KillPod | KillContainer | RemoveContainer | CreateSandbox | StartContainer | Resize | HoldBack
)

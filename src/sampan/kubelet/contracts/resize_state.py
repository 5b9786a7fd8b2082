"""How far a resize of a pod got: what its status tells.

Job: two frozen values, which allocation decides and status shows; what a container really has.
"""

import json
from collections.abc import Mapping
from typing import TypeAlias

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import ContainerStatus
from sampan.kubelet.contracts.spec import RESOURCES_ANNOTATION

Resources: TypeAlias = Mapping[str, Mapping[str, str]]  # limits and requests, by name
Applied: TypeAlias = Mapping[str, Resources]  # what containers got after creation, by id


def actual_resources(container: ContainerStatus, applied: Applied) -> Resources | None:
    """None: it was created without any, which no resize can change."""
    made_with = container.annotations.get(RESOURCES_ANNOTATION)
    if made_with is None:
        return None
    has: Resources = applied.get(container.id) or json.loads(made_with)
    return has


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

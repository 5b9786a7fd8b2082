"""How far a resize of a pod got: what its status tells.

Job: two frozen values, which allocation decides and status shows; what a container really has.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.runtime import ContainerStatus
from sampan.kubelet.contracts.spec import RESOURCES_ANNOTATION

Resources: TypeAlias = Mapping[str, Mapping[str, str]]  # limits and requests, by name
# What containers got after creation, by id; what the pod as a whole has by now, by WHOLE.
Applied: TypeAlias = Mapping[str, Resources]
WHOLE = ""


def actual_resources(container: ContainerStatus, applied: Applied) -> Resources:
    return applied.get(container.id) or resources_made_with(container)


def resources_made_with(container: ContainerStatus) -> Resources:
    """A container that was created without any has no note of them, either."""
    made_with = container.annotations.get(RESOURCES_ANNOTATION)
    return _NOTHING if made_with is None else _read_resources(made_with)


_NOTHING: Resources = {}


@lru_cache(maxsize=1024)
def _read_resources(text: str) -> Resources:
    """Looked at in each step of each pod, and the same for all of one template."""
    found: Resources = json.loads(text)
    return found


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

"""What every part of one node is given: its settings, its API, its runtime, its time.

Job: one frozen value instead of seven arguments.
"""

import random
from collections.abc import Callable
from dataclasses import field

from sampan.api.objects import Obj
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.runtime import Runtime, RuntimeEvent
from sampan.kubelet.settings import KubeletSettings

LANE = "kubelet"  # of its steps in traces
Hear = Callable[[RuntimeEvent | None], None]  # None: there are no more


def _node_tasks() -> Tasks:
    return Tasks("kubelet")


@dataclass(frozen=True, slots=True)
class Keeper:
    """Who keeps the lease and the status of one of many nodes, so that its agent has only pods to
    look after."""

    node: Obj  # as the API shows it
    listen: Callable[[Hear], Callable[[], None]]  # to the runtime; returns how to stop that
    leave: Callable[[], None]  # the agent has to keep them itself


@dataclass(frozen=True, slots=True)
class NodeContext:
    settings: KubeletSettings
    client: Client
    runtime: Runtime
    clock: Clock
    metrics: Metrics
    rng: random.Random
    # Of a pod that comes with the first delivery: nothing has to be looked at, or done for it.
    goes_on: Callable[[Obj], bool] | None = None
    # Of a pod of which nothing was begun, and where its logs go: may it run from now on, without a
    # step? A runtime that has no such way has None.
    start_at_once: Callable[[Obj, str], bool] | None = None
    keeper: Keeper | None = None  # None: the agent itself
    tasks: Tasks = field(default_factory=_node_tasks)

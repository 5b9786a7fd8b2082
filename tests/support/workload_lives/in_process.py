"""A control plane of this process for lives: API server, every controller, scheduler, nodes.

Job: `lived(name, life)` on virtual time, each life in a cluster of its own.
"""

import random

from sampan.api.objects import Obj
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import Controller, selected_controllers
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.workload_lives.live import live
from tests.support.workload_lives.stand_in_nodes import StandInNodes
from tests.support.workload_lives.steps import Life
from tests.support.workload_lives.transport import InProcess
from tests.support.worlds.control_plane import ControlPlane

# Of sampan alone: it would provide volumes and addresses that the other cluster has nobody for.
NOT_HERE = ("local-provisioner", "service-lb-controller")


def lived(name: str, life: Life, seed: int = 1) -> Obj:
    return virtual_time.run(_lived(name, life, seed))


async def _lived(name: str, life: Life, seed: int) -> Obj:
    async with ControlPlane(_controllers) as plane:
        transport = InProcess(plane.server)
        nodes = StandInNodes(transport, plane.clock)
        scheduling = Tasks("scheduler")
        scheduler = Scheduler(
            plane.as_user("system:kube-scheduler"),
            clock=plane.clock,
            rng=random.Random(seed),
            metrics=plane.metrics,
        )
        scheduling.start("scheduler", scheduler.run())
        try:
            await nodes.join()
            return await live(transport, nodes, name, life)
        finally:
            await nodes.stop()
            await scheduling.stop()


def _controllers() -> list[Controller]:
    settings = ControllerSettings(root_ca="PEM", clock=LoopClock())
    return selected_controllers(
        all_controllers(settings), ["*", *(f"-{name}" for name in NOT_HERE)]
    )

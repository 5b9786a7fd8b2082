"""What drivers of simulated nodes have in the API: ResourceSlices, CSIDrivers, and their sidecars.

Job: publish devices as the drivers there would; start what is installed of CSI drivers beside the
    nodes.
Owner: SimulatedNodes.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from sampan.api.errors import AlreadyExists, ApiError
from sampan.api.objects import Obj
from sampan.api.resources import CSI_DRIVERS, RESOURCE_SLICES
from sampan.client.contract import Client
from sampan.cmd.cluster.nodes import PRETENDED_DRIVERS, ClientMaker
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.scenario import NODES_FLAG
from sampan.core.clock import Clock
from sampan.core.tasks import all_of

if TYPE_CHECKING:
    from sampan.drivers.sidecars.sidecars import Sidecars
    from sampan.kubelet.simulated.node_types import NodeShape
    from sampan.kubelet.simulated.pretence import PretendedDriver


class NodeDrivers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sidecars: list[Sidecars] = []

    async def start(self, shapes: "Sequence[NodeShape]", clients: ClientMaker) -> None:
        """Raises CannotStart."""
        await all_of(_publish(shape, clients) for shape in shapes if shape.slices)
        drivers = {driver.name: driver for shape in shapes for driver in shape.pretence.drivers}
        if drivers:
            # Their messages are loaded once somebody pretends to read them.
            module = await asyncio.to_thread(
                import_module, "sampan.cmd.cluster.simulated.pretended_sidecars"
            )
            client = clients(PRETENDED_DRIVERS)
            await all_of(_install(driver, client) for driver in drivers.values())
            for driver in drivers.values():
                made: Sidecars = module.sidecars_of(driver, client, self._clock)
                self._sidecars.append(made)
                await made.start()

    async def stop(self) -> None:
        await all_of(sidecars.stop() for sidecars in self._sidecars)


async def _publish(shape: "NodeShape", clients: ClientMaker) -> None:
    """The devices of a node."""
    client = clients(f"system:node:{shape.name}")
    for number, spec in enumerate(shape.slices):
        name = f"{shape.name}-{spec['driver']}-{number}"
        obj: Obj = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
               "metadata": {"name": name}, "spec": spec}  # fmt: skip
        try:
            await client.create(RESOURCE_SLICES, obj)
        except AlreadyExists:
            continue  # of an earlier start
        except ApiError as error:
            raise CannotStart(f"{NODES_FLAG}: devices of {shape.name}: {error}") from error


async def _install(driver: "PretendedDriver", client: Client) -> None:
    spec = {
        "attachRequired": driver.attaches,
        "storageCapacity": driver.capacity_bytes is not None,
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
    }
    obj: Obj = {"apiVersion": CSI_DRIVERS.api_version, "kind": CSI_DRIVERS.kind,
                "metadata": {"name": driver.name}, "spec": spec}  # fmt: skip
    try:
        await client.create(CSI_DRIVERS, obj)
    except AlreadyExists:
        return  # of an earlier start, or as its author wants it
    except ApiError as error:
        raise CannotStart(f"{NODES_FLAG}: CSI driver {driver.name}: {error}") from error

"""Sidecars of a CSI driver in one: provisioner, attacher, resizer, snapshotter, capacity.

Job: for whatever driver listens at a socket, do in the API what the kubernetes-csi containers do.
Invariant: what the driver cannot do is not begun.
Owner: cmd/ runs them beside a driver; a test beside its own.
"""

import random
from collections.abc import Callable
from functools import partial

from sampan.api.errors import AlreadyExists
from sampan.api.resources import (
    CSI_NODES,
    CUSTOM_RESOURCE_DEFINITIONS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from sampan.client.contract import Client
from sampan.client.events import EventRecorder
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.clock import Clock
from sampan.core.flag import Flag
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks, all_of
from sampan.drivers.sidecars.attacher import Attacher
from sampan.drivers.sidecars.capacity import Capacity
from sampan.drivers.sidecars.context import Known, SidecarContext
from sampan.drivers.sidecars.controller_calls import CREATE, SNAPSHOT, ControllerCalls
from sampan.drivers.sidecars.provisioner import Provisioner
from sampan.drivers.sidecars.resizer import Resizer
from sampan.drivers.sidecars.snapshot_kinds import definitions
from sampan.drivers.sidecars.snapshotter import Snapshotter
from sampan.plugins.csi import CsiSocket

log = get_logger(__name__)

PATIENCE_SECONDS = 1.0  # until a driver that does not answer is asked again


def at_socket(endpoint: str) -> Callable[[], CsiSocket]:
    return partial(CsiSocket, endpoint)


class Sidecars:
    def __init__(
        self,
        connect: Callable[[], CsiSocket],
        client: Callable[[], Client],
        node_name: str,
        clock: Clock,
    ) -> None:
        """`connect`: to the driver, once they run. `node_name`: beside which it is; empty: it is
        one for all nodes."""
        self._connect, self._make_client = connect, client
        self._node_name, self._clock = node_name, clock
        self._tasks = Tasks("sidecars")
        self._socket: CsiSocket | None = None

    async def start(self) -> None:
        self._tasks.start("sidecars", self._begin())

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._socket is not None:
            await self._socket.close()

    def hurry(self) -> None:
        """They have nobody to wait for."""

    async def _begin(self) -> None:
        self._socket = self._connect()
        calls, client = ControllerCalls(self._socket), self._make_client()
        while True:
            try:
                await calls.begin()
                break
            except GrpcFailure as failure:
                log.info("CSI driver does not answer yet", why=failure)
                await self._clock.sleep(PATIENCE_SECONDS)
        context = SidecarContext(
            calls, client, self._known(client), self._recorder(client, calls.name), self._tasks,
            self._clock, self._node_name, Flag(),
        )  # fmt: skip
        await self._begin_all(context)
        log.info("CSI sidecars are running", driver=calls.name)

    async def _begin_all(self, context: SidecarContext) -> None:
        if CREATE in context.calls.able:
            Provisioner(context)
        Attacher(context)
        Resizer(context)
        Capacity(context)
        if SNAPSHOT in context.calls.able:
            await self.define_snapshots(context.client)
            Snapshotter(context)
        known = context.known
        every = (known.claims, known.volumes, known.classes, known.attribute_classes, known.nodes,
                 known.csi_nodes)  # fmt: skip
        for informer in every:
            self._tasks.supervise(informer.resource.plural, informer.run)
        await all_of(informer.synced() for informer in every)
        context.ready.set()

    def _known(self, client: Client) -> Known:
        return Known(*(
            Informer(client, Selection(row), clock=self._clock, rng=random.Random())
            for row in (
                PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES,
                VOLUME_ATTRIBUTES_CLASSES, NODES, CSI_NODES,
            )
        ))  # fmt: skip

    def _recorder(self, client: Client, driver: str) -> EventRecorder:
        recorder = EventRecorder(
            client,
            f"{driver}_{self._node_name}".rstrip("_"),
            clock=self._clock,
            rng=random.Random(),
        )
        self._tasks.supervise("events", recorder.run)
        return recorder

    async def define_snapshots(self, client: Client) -> None:
        """Somebody else's definitions are as good."""
        for definition in definitions():
            try:
                await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
            except AlreadyExists:
                continue

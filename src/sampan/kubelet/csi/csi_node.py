"""CSINode: the object that lists the node's CSI drivers, kept true.

Job: keep the CSINode there and true, and the marks of the Node, as drivers come and go.
Invariant: one write at a time: both objects hold something of every driver.
Owner: Kubelet; the handler of CSI drivers calls it.
"""

import asyncio
from collections.abc import Awaitable, Callable

from sampan.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from sampan.api.objects import Obj, uid_of
from sampan.api.resources import CSI_NODES, NODES
from sampan.client.contract import Client
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.kubelet.csi.node_info import (
    DriverNode,
    TopologyCollision,
    is_owned_by,
    new_csi_node,
    node_patch_with,
    node_patch_without,
    with_driver,
    with_marks,
    without_driver,
)

log = get_logger(__name__)

# As upstream's updateBackoff: four tries.
PAUSES = (0.01, 0.06, 0.36)
RETRY = Backoff(first_seconds=0.1, cap_seconds=30.0)


class CsiNodeFailure(Exception):
    """The API was not told."""


class CsiNodeWriter:
    def __init__(self, client: Client, node_name: str, clock: Clock) -> None:
        self._client, self._node_name, self._clock = client, node_name, clock
        self._writing = asyncio.Lock()

    async def ensure(self) -> None:
        """The CSINode is there; tried for as long as it takes."""
        failures = 0
        while True:
            try:
                await self._csi_node(with_marks)
                return
            except CsiNodeFailure as error:
                failures += 1
                log.warning("CSINode was not written, trying again", error=error)
                await self._clock.sleep(RETRY.delay(failures))

    async def install(self, said: DriverNode) -> None:
        """Raises CsiNodeFailure."""
        if not said.node_id:
            raise CsiNodeFailure(
                "error adding CSI driver node info: driverNodeID must not be empty"
            )
        try:
            await self._node(lambda node: node_patch_with(node, said))
        except CsiNodeFailure as error:
            what = "error updating Node object with CSI driver node info"
            raise CsiNodeFailure(f"{what}: {error}") from error
        await self.update(said)

    async def update(self, said: DriverNode) -> None:
        """What the driver says may have changed. Raises CsiNodeFailure."""
        try:
            await self._csi_node(lambda found: with_driver(found, said))
        except CsiNodeFailure as error:
            what = "error updating CSINode object with CSI driver node info"
            raise CsiNodeFailure(f"{what}: {error}") from error

    async def uninstall(self, driver: str) -> None:
        """Raises CsiNodeFailure."""
        await self._csi_node(lambda found: without_driver(found, driver))
        await self._node(lambda node: node_patch_without(node, driver))

    async def _node(self, change: Callable[[Obj], Obj | None]) -> None:
        async def once() -> None:
            node = await self._client.get(NODES, "", self._node_name)
            patch = change(node)
            if patch is not None:
                await self._client.patch(NODES, "", self._node_name, patch, patch_type="merge")

        await self._patiently(once)

    async def _csi_node(self, change: Callable[[Obj], Obj | None]) -> None:
        async def once() -> None:
            changed = change(await self._own())
            if changed is not None:
                await self._client.update(CSI_NODES, changed)

        await self._patiently(once)

    async def _own(self) -> Obj:
        """The CSINode of the Node that there is now; one of an earlier Node goes."""
        uid = uid_of(await self._client.get(NODES, "", self._node_name))
        try:
            found = await self._client.get(CSI_NODES, "", self._node_name)
        except NotFound:
            found = None
        if found is not None and not is_owned_by(found, self._node_name, uid):
            await self._client.delete(CSI_NODES, "", self._node_name)
            found = None
        if found is None:
            found = await self._client.create(CSI_NODES, new_csi_node(self._node_name, uid))
        return found

    async def _patiently(self, attempt: Callable[[], Awaitable[None]]) -> None:
        async with self._writing:
            for pause in (*PAUSES, None):
                try:
                    await attempt()
                    return
                except (TopologyCollision, ValueError) as error:
                    raise CsiNodeFailure(str(error)) from error
                except ApiError as error:
                    if pause is None:
                        raise CsiNodeFailure(str(error)) from error
                    if not isinstance(error, AlreadyExists | Conflict | NotFound):
                        log.debug("CSINode was not written, trying again", error=error)
                    await self._clock.sleep(pause)

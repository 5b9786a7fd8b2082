"""Volume attachments: the wait before a volume of an attachable driver is mounted.

Job: tell that a volume is in use here, wait until the attach-detach controller says that it is
    attached, read what the driver has to know of that.
Invariant: nothing is mounted before the API shows the volume as in use on this node: from then on
    the controller does not detach it.
Owner: CsiVolumes.
"""

import asyncio
from collections.abc import Callable, Mapping

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, is_deleted
from sampan.api.resources import VOLUME_ATTACHMENTS
from sampan.api.rules.storage import attachment_name
from sampan.client.contract import Client
from sampan.kubelet.csi.csi_volume import CsiVolume, unique_name

# As upstream's podAttachAndMountTimeout: two minutes and three seconds.
WAIT_SECONDS = 123.0


class NotAttached(Exception):
    """And why."""


class AttachTimeout(Exception):
    """Nobody attached it in time. `exhausted`: because the node can take no more."""

    def __init__(self, *, exhausted: bool = False) -> None:
        super().__init__("context deadline exceeded")
        self.exhausted = exhausted


class Attachments:
    def __init__(self, client: Client, node_name: str, node: Callable[[], Obj]) -> None:
        """`node`: as the API last showed it."""
        self._client, self._node_name, self._node = client, node_name, node
        self._waiting: set[asyncio.Event] = set()

    def node_changed(self) -> None:
        for waiter in self._waiting:
            waiter.set()

    async def wait(self, volume: CsiVolume) -> None:
        """Raises AttachTimeout."""
        waiter, name = asyncio.Event(), unique_name(volume)
        self._waiting.add(waiter)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not self._is_attached(name):
                    waiter.clear()
                    await waiter.wait()
        except TimeoutError as error:
            raise AttachTimeout(exhausted=await self._is_exhausted(volume)) from error
        finally:
            self._waiting.discard(waiter)

    def _is_attached(self, name: str) -> bool:
        status = self._node().get("status") or {}
        attached = {item.get("name") for item in status.get("volumesAttached") or ()}
        return name in attached and name in (status.get("volumesInUse") or ())

    async def context(self, volume: CsiVolume) -> Mapping[str, str]:
        """What ControllerPublishVolume answered. Raises NotAttached."""
        name = attachment_name(volume.handle, volume.driver, self._node_name)
        try:
            found = await self._client.get(VOLUME_ATTACHMENTS, "", name)
        except ApiError as error:
            raise NotAttached(
                f"volume {volume.handle} has GET error for volume attachment {name}: {error}"
            ) from error
        why = _why_not(found)
        if why is None:
            status = found.get("status") or {}
            return dict(status.get("attachmentMetadata") or {})
        raise NotAttached(
            why or f"volume {volume.handle} is not attached for volume attachment {name}"
        )

    async def _is_exhausted(self, volume: CsiVolume) -> bool:
        """Did the driver say that this node can take no more?"""
        name = attachment_name(volume.handle, volume.driver, self._node_name)
        try:
            found = await self._client.get(VOLUME_ATTACHMENTS, "", name)
        except ApiError:
            return False
        error = (found.get("status") or {}).get("attachError") or {}
        return error.get("errorCode") == _RESOURCE_EXHAUSTED


_RESOURCE_EXHAUSTED = 8  # gRPC's number


def _why_not(attachment: Obj) -> str | None:
    """None: it is attached; empty: not yet."""
    if is_deleted(attachment):
        return "volume attachment is being deleted"
    status = attachment.get("status") or {}
    if status.get("attached"):
        return None
    return str((status.get("attachError") or {}).get("message") or "")

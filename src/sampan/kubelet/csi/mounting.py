"""Stage, publish, unpublish, unstage: one CSI volume, in upstream's order.

Job: gather what a call needs (secrets, pod information, tokens), note on disk what is about to be
    done, call the driver, and take the note back where the driver says that nothing was done.
Invariant: the note is on disk before the driver is called, and goes after the driver has undone it.
Invariant: a call whose outcome is not known keeps its note: what it may have made is taken back.
Owner: CsiVolumes, which calls it for one volume at a time.
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, spec_of, uid_of
from sampan.api.resources import SECRETS
from sampan.api.rules.storage import attachment_name
from sampan.client.contract import Client
from sampan.client.events import reference
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.mounts import is_mounted
from sampan.kubelet.contracts.events_hook import RecordEvent, nobody
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.csi import volume_data
from sampan.kubelet.csi.csi_volume import (
    PERSISTENT,
    PLUGIN,
    CsiDriver,
    CsiVolume,
    SecretName,
    node_gives_group,
    pod_attributes,
    token_attribute,
)
from sampan.kubelet.csi.selinux_mount import mount_option
from sampan.kubelet.csi.volume_paths import DATA_FILE, CsiPaths
from sampan.kubelet.volumes.ownership import Walked, give_to_group
from sampan.kubelet.volumes.slow_ownership import REASON, told_while
from sampan.kubelet.volumes.tokens import Tokens

if TYPE_CHECKING:
    from sampan.kubelet.csi.driver_calls import DriverCalls

log = get_logger(__name__)

_MODE = 0o750


@dataclass(frozen=True, slots=True)
class Occasion:
    """For whom a volume is mounted, and by whom."""

    pod: Obj
    volume: CsiVolume
    driver: CsiDriver
    calls: "DriverCalls"
    context: Mapping[str, str]  # of the attachment
    is_remount: bool = False
    selinux_label: str = ""  # it is mounted with

    @property
    def mount_options(self) -> tuple[str, ...]:
        if self.volume.block:
            return ()
        return (*self.volume.mount_options, *mount_option(self.selinux_label))

    @property
    def group(self) -> int | None:
        found: int | None = (spec_of(self.pod).get("securityContext") or {}).get("fsGroup")
        return found


class Mounting:
    def __init__(self, client: Client, paths: CsiPaths, node_name: str, tokens: Tokens) -> None:
        self._client, self._paths = client, paths
        self._node_name, self._tokens = node_name, tokens
        self.tell: RecordEvent = nobody

    async def stage(self, occasion: Occasion) -> None:
        """Raises VolumeFailure, GrpcFailure, OSError."""
        from sampan.kubelet.csi.driver_calls import GROUP, STAGE, Given, is_final

        volume, calls = occasion.volume, occasion.calls
        stages = await calls.can(STAGE)
        staging = self._paths.staging(volume)
        secrets = await self._secrets(volume.stage_secret, "NodeStageSecretRef") if stages else {}
        data = volume_data.stage_data(
            volume, attachable=occasion.driver.attach_required, selinux=occasion.selinux_label
        )
        await asyncio.to_thread(_note, self._paths.stage_data(volume), data, staging)
        if not stages:
            return
        given = Given(
            secrets=secrets,
            publish_context=occasion.context,
            attributes=volume.attributes,
            mount_options=occasion.mount_options,
            group=occasion.group if not volume.block and await calls.can(GROUP) else None,
        )
        try:
            await calls.stage(volume, staging, given)
        except GrpcFailure as failure:
            if is_final(failure):
                await self._take_back(partial(volume_data.remove_staged, self._paths, volume))
            raise

    def staging(self, volume: CsiVolume) -> str:
        return self._paths.staging(volume)

    async def is_noted(self, volume: CsiVolume) -> bool:
        """Is, or may it be staged?"""
        note = f"{self._paths.stage_data(volume)}/{DATA_FILE}"
        return await asyncio.to_thread(os.path.exists, note)

    async def publish(self, occasion: Occasion) -> str:
        """Where the volume is. Raises VolumeFailure, GrpcFailure, OSError."""
        from sampan.kubelet.csi.driver_calls import GROUP, STAGE, Given, is_final

        volume, calls, uid = occasion.volume, occasion.calls, uid_of(occasion.pod)
        target = self._paths.target(volume, uid)
        stages = volume.mode == PERSISTENT and await calls.can(STAGE)
        secrets = await self._secrets(volume.publish_secret, "NodePublishSecretRef")
        attributes = dict(volume.attributes)
        if occasion.driver.pod_info:
            attributes |= pod_attributes(occasion.pod, volume)
        tokens = token_attribute(await self._pod_tokens(occasion))
        if occasion.driver.tokens_in_secrets:
            secrets |= tokens
        else:
            attributes |= tokens
        driver_gives_group = not volume.block and await calls.can(GROUP)
        await asyncio.to_thread(self._note_published, volume, uid, occasion.selinux_label)
        given = Given(
            secrets=secrets,
            publish_context=occasion.context,
            attributes=attributes,
            mount_options=occasion.mount_options,
            group=occasion.group if driver_gives_group else None,
        )
        staging = self._paths.staging(volume) if stages or volume.block else ""
        try:
            await calls.publish(volume, staging, target, given)
        except GrpcFailure as failure:
            if is_final(failure) and not occasion.is_remount:
                take_back = partial(volume_data.remove_published, self._paths, volume, uid)
                await self._take_back(take_back)
            raise
        if not driver_gives_group:
            await self._give_to_group(occasion, target)
        return target

    def _note_published(self, volume: CsiVolume, uid: str, label: str) -> None:
        attachment = attachment_name(volume.handle, volume.driver, self._node_name)
        data = volume_data.publish_data(volume, self._node_name, attachment, label)
        volume_data.save(self._paths.publish_data(volume, uid), data)
        if volume.block:
            os.makedirs(os.path.dirname(self._paths.target(volume, uid)), _MODE, exist_ok=True)

    async def _give_to_group(self, occasion: Occasion, target: str) -> None:
        volume, group = occasion.volume, occasion.group
        if volume.block or not node_gives_group(volume, occasion.driver, group):
            return
        assert group is not None
        context = spec_of(occasion.pod).get("securityContext") or {}
        only = context.get("fsGroupChangePolicy") == "OnRootMismatch"
        walked, uid = Walked(), uid_of(occasion.pod)
        change = partial(give_to_group, target, group, only_on_mismatch=only, walked=walked)
        about, place = reference(occasion.pod), target[max(target.find(uid), 0) :]
        try:
            changing = asyncio.get_running_loop().run_in_executor(None, change)
            tell = partial(self.tell, about, "Warning", REASON)
            await told_while(changing, walked, place, tell)
        except OSError as error:
            raise VolumeFailure(f"applyFSGroup failed for vol {volume.handle}: {error}") from error

    async def unpublish(self, calls: "DriverCalls", volume: CsiVolume, uid: str) -> None:
        """Raises GrpcFailure, OSError."""
        await calls.unpublish(volume, self._paths.target(volume, uid))
        await asyncio.to_thread(volume_data.remove_published, self._paths, volume, uid)

    async def unstage(self, calls: "DriverCalls", volume: CsiVolume) -> None:
        """Raises GrpcFailure, OSError."""
        from sampan.kubelet.csi.driver_calls import STAGE

        if await calls.can(STAGE):
            await calls.unstage(volume, self._paths.staging(volume))
        await asyncio.to_thread(volume_data.remove_staged, self._paths, volume)

    async def secrets(self, name: SecretName | None) -> dict[str, str]:
        """Raises ApiError."""
        if name is None:
            return {}
        found = await self._client.get(SECRETS, *name)
        data = found.get("data") or {}
        return {key: base64.b64decode(value).decode(errors="surrogateescape")
                for key, value in data.items()}  # fmt: skip

    async def _secrets(self, name: SecretName | None, field: str) -> dict[str, str]:
        try:
            return await self.secrets(name)
        except ApiError as error:
            assert name is not None
            space, own = name
            why = (
                f"{PLUGIN}: failed to find the secret {own} in the namespace {space} with error: "
                f"{error}"
            )
            raise VolumeFailure(f"fetching {field} {space}/{own} failed: {why}") from error

    async def _pod_tokens(self, occasion: Occasion) -> list[tuple[str, Obj]]:
        found = []
        for wanted in occasion.driver.tokens:
            projection = {"audience": wanted.audience, "expirationSeconds": wanted.seconds}
            try:
                status = await self._tokens.status(occasion.pod, projection)
            except VolumeFailure as error:
                why = f"{PLUGIN}: mounter.SetUpAt failed to get service accoount token attributes"
                raise VolumeFailure(f"{why}: {error}") from error
            found.append((wanted.audience, status))
        return found

    async def _take_back(self, work: "partial[None]") -> None:
        """What was noted for a call that did nothing."""
        try:
            await asyncio.to_thread(work)
        except OSError as error:
            log.warning("volume's directory stays after an error", error=error)


def _note(directory: str, data: Mapping[str, str], staging: str) -> None:
    volume_data.save(directory, data)
    if not is_mounted(staging):
        os.makedirs(staging, _MODE, exist_ok=True)

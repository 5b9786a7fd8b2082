"""The volumes of a node's pods that CSI drivers mount.

Job: attach, stage and publish what a pod asks for; unpublish it with the pod; unstage what nobody
    uses any more; find all of it again after a restart.
Invariant: for one volume one call is under way at a time, whoever asked for it.
Invariant: nothing is unstaged while a pod has it, or is about to.
Invariant: what is not unstaged now is tried again, until it is, or somebody uses it.
Owner: NodeVolumes asks; Kubelet builds it.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, uid_of
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.lock_per_key import LockPerKey
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.contracts.volumes_hook import MountedVolume, VolumeFailure
from sampan.kubelet.csi.attachments import Attachments, AttachTimeout, NotAttached
from sampan.kubelet.csi.block_devices import link_device
from sampan.kubelet.csi.csi_drivers import CsiDrivers, DriverMissing
from sampan.kubelet.csi.csi_volume import (
    PERSISTENT,
    PLUGIN,
    CsiDriver,
    CsiVolume,
    why_unsupported,
)
from sampan.kubelet.csi.driver_objects import DriverObjects
from sampan.kubelet.csi.expander import Expander
from sampan.kubelet.csi.expansion_rules import may_have_grown
from sampan.kubelet.csi.mounting import Mounting, Occasion
from sampan.kubelet.csi.selinux_mount import conflict, mount_label
from sampan.kubelet.csi.users import Key, VolumeUsers
from sampan.kubelet.csi.volume_paths import CsiPaths
from sampan.kubelet.volumes.storage_operations import (
    MAP,
    MOUNT,
    UNMAP,
    UNMAP_DEVICE,
    UNMOUNT,
    UNMOUNT_DEVICE,
    StorageOperations,
)

if TYPE_CHECKING:
    from sampan.kubelet.csi.driver_calls import DriverCalls, VolumeStats

log = get_logger(__name__)

# As upstream's back-off of an operation that failed.
RETRY = Backoff(first_seconds=0.5, cap_seconds=122.0)
# As often as upstream syncs a pod.
LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class CsiParts:
    """What CSI volumes are made with."""

    drivers: CsiDrivers
    objects: DriverObjects
    attachments: Attachments
    mounting: Mounting
    expander: Expander
    paths: CsiPaths
    operations: StorageOperations
    selinux_context: str = ""  # of the machine's containers' files


class CsiVolumes:
    def __init__(self, parts: CsiParts, *, tasks: Tasks, clock: Clock) -> None:
        self._drivers, self._objects = parts.drivers, parts.objects
        self._attachments, self._mounting = parts.attachments, parts.mounting
        self._expander, self._operations = parts.expander, parts.operations
        self._looked: dict[str, float] = {}  # by uid: when a pod's volumes were looked at
        self._paths, self._tasks, self._clock = parts.paths, tasks, clock
        self._selinux_context = parts.selinux_context
        self._users = VolumeUsers()
        self._locks = LockPerKey()
        self._unstaging: set[Key] = set()
        self._driver_came = asyncio.Event()
        self.in_use_changed: Callable[[], None] = lambda: None
        if os.path.isdir(parts.paths.plugin) or os.path.isdir(f"{parts.paths.root}/pods"):
            self._users.read(parts.paths, _names(f"{parts.paths.root}/pods"))

    def in_use(self) -> tuple[str, ...]:
        """By the unique names that a node's status lists."""
        return self._users.in_use()

    def driver_changed(self, _name: str) -> None:
        self._driver_came.set()
        self._driver_came = asyncio.Event()

    # Up.

    async def mount(
        self, pod: Obj, volume: CsiVolume, *, is_remount: bool = False
    ) -> MountedVolume:
        """Raises VolumeFailure."""
        uid = uid_of(pod)
        self._check_alone(volume, uid)
        self._users.add(volume, uid)
        self._looked.setdefault(uid, self._clock.now())
        driver = await self._objects.get(volume.driver)
        with _failing(volume, "SetUp", "SetUpDevice"):
            if why := why_unsupported(volume, driver):
                what = f"{PLUGIN}: mounter.SetupAt failed to check volume lifecycle mode"
                raise VolumeFailure(f"{what}: {why}")
        self._begin_use(volume, uid, driver)
        self.in_use_changed()
        context = await self._context(volume, attach=driver.attach_required)
        # Whoever is cancelled meanwhile goes; what a driver was asked for comes to its end.
        outcome = await asyncio.shield(
            self._tasks.start(
                f"mount {volume.name}",
                self._set_up_alone(pod, volume, driver, context, is_remount=is_remount),
            )
        )
        if isinstance(outcome, VolumeFailure):
            raise outcome
        return outcome

    def _begin_use(self, volume: CsiVolume, uid: str, driver: CsiDriver) -> None:
        self._users.add(volume, uid)
        if volume.mode == PERSISTENT:
            self._users.stages(volume, attachable=driver.attach_required)

    def _check_alone(self, volume: CsiVolume, uid: str) -> None:
        if volume.only_one_pod and self._users.others(volume, uid):
            with _failing(volume, "SetUp", "SetUpDevice"):
                raise VolumeFailure(
                    "volume uses the ReadWriteOncePod access mode and is already in use by another "
                    "pod"
                )

    async def _set_up_alone(
        self,
        pod: Obj,
        volume: CsiVolume,
        driver: CsiDriver,
        context: Mapping[str, str],
        *,
        is_remount: bool,
    ) -> MountedVolume | VolumeFailure:
        async with self._locks.held(volume.key):
            # Somebody else's last step may have let it go meanwhile.
            self._begin_use(volume, uid_of(pod), driver)
            try:
                calls = self._calls(volume)
                label = await self._label(pod, volume, driver, calls)
                occasion = Occasion(pod, volume, driver, calls, context, is_remount, label)
                with self._timed(volume, MAP if volume.block else MOUNT):
                    return await self._set_up(occasion)
            except VolumeFailure as failure:
                return failure

    def _timed(self, volume: CsiVolume, operation: str) -> AbstractContextManager[None]:
        plugin = f"{PLUGIN}:{volume.driver}"
        return self._operations.timed(plugin, operation, migrated=volume.migrated)

    async def _label(
        self, pod: Obj, volume: CsiVolume, driver: CsiDriver, calls: "DriverCalls"
    ) -> str:
        """What it is mounted with; whoever has another label waits until it is free, and it is
        staged anew. Raises VolumeFailure."""
        with _failing(volume, "SetUp", "SetUpDevice"):
            label = mount_label(pod, volume, driver, self._selinux_context)
            known = self._users.labels.get(volume.key, "")
            if label != known and self._users.is_staged(volume):
                if self._users.others(volume, uid_of(pod)):
                    raise conflict(volume, known, label)
                await self._mounting.unstage(calls, volume)
                self._users.unstaged(volume)
                self._begin_use(volume, uid_of(pod), driver)
        if label:
            self._users.labels[volume.key] = label
        else:
            self._users.labels.pop(volume.key, None)
        return label

    async def _context(self, volume: CsiVolume, *, attach: bool) -> Mapping[str, str]:
        if volume.mode != PERSISTENT or not attach:
            return {}
        try:
            await self._attachments.wait(volume)
        except AttachTimeout as error:
            raise await self._not_attached(volume, error) from error
        with _failing(volume, "WaitForAttach", "WaitForAttach"):
            return await self._attachments.context(volume)

    async def _not_attached(self, volume: CsiVolume, error: AttachTimeout) -> VolumeFailure:
        """In time. As upstream: the attach-detach controller has said why; but a node that can take
        no more refuses the pod, where its driver says now and then how many it takes."""
        why = (
            f"unmounted volumes=[{volume.name}], unattached volumes=[{volume.name}], "
            f"failed to process volumes=[]: {error}"
        )
        if not error.exhausted or not self._objects.known(volume.driver).allocatable_seconds:
            return VolumeFailure(f"Unable to attach or mount volumes: {why}", reason="")
        await self._drivers.ask_again(volume.driver)
        full = f"Node has reached its volume attachment limit, rejecting pod. {why}"
        verdict = Verdict("VolumeAttachmentLimitExceeded", f"Pod was rejected: {full}")
        return VolumeFailure(full, reason="", verdict=verdict)

    def _calls(self, volume: CsiVolume) -> "DriverCalls":
        try:
            return self._drivers.calls(volume.driver)
        except DriverMissing as error:
            step, what = "SetUp", "mounter.SetUpAt failed to get CSI client"
            if volume.mode == PERSISTENT:
                step, what = (
                    "MountDevice",
                    ("attacher.MountDevice failed to create newCsiDriverClient"),
                )
            if volume.block:
                what = "blockMapper.SetUpDevice failed to get CSI client"
            raise _failed(volume, step, "SetUpDevice", f"{PLUGIN}: {what}: {error}") from error

    async def _set_up(self, occasion: Occasion) -> MountedVolume:
        volume = occasion.volume
        if volume.mode == PERSISTENT and not self._users.is_staged(volume):
            await self._stage(occasion)
        with _failing(volume, "SetUp", "MapPodDevice"):
            target = await self._mounting.publish(occasion)
            labelled_here = self._selinux_context and not occasion.selinux_label
            relabel = bool(labelled_here and not volume.read_only)
            mounted = MountedVolume(target, volume.read_only, relabel=relabel)
            if volume.block:
                link = self._paths.device_link(volume, uid_of(occasion.pod))
                device = await asyncio.to_thread(link_device, target, link)
                mounted = MountedVolume("", volume.read_only, device=device)
        if may_have_grown(volume):
            step = "Setup failed while expanding volume"
            with _failing(volume, step, "MarkVolumeAsMounted failed while expanding volume"):
                await self._expander.look(occasion.pod, volume, occasion.calls, target)
        return mounted

    async def _stage(self, occasion: Occasion) -> None:
        volume = occasion.volume
        try:
            with _failing(volume, "MountDevice", "SetUpDevice"):
                await self._mounting.stage(occasion)
        except VolumeFailure:
            if not await self._mounting.is_noted(volume):
                self._users.unstaged(volume)  # for sure
            raise
        self._users.staged(volume)

    # As long as the pod runs.

    def next_refresh(self, uid: str) -> float | None:
        """When `refresh` has something to look at."""
        if not any(self._changes(volume) for volume in self._users.of_pod(uid)):
            return None
        return self._looked.get(uid, 0.0) + LOOK_SECONDS

    def _changes(self, volume: CsiVolume) -> bool:
        republishes = self._objects.known(volume.driver).republishes
        return republishes or (volume.claim is not None and not volume.read_only)

    async def refresh(self, pod: Obj) -> None:
        """Publish again for drivers that want that, and let grow what has grown elsewhere. Raises
        VolumeFailure."""
        uid = uid_of(pod)
        due = self.next_refresh(uid)
        if due is None or self._clock.now() < due:
            return
        self._looked[uid] = self._clock.now()
        for volume in self._users.of_pod(uid):
            if self._objects.known(volume.driver).republishes:
                await self.mount(pod, volume, is_remount=True)
            elif volume.claim is not None and not volume.read_only:
                await self._grow(pod, volume)

    async def _grow(self, pod: Obj, volume: CsiVolume) -> None:
        async with self._locks.held(volume.key):
            try:
                calls = self._drivers.calls(volume.driver)
                await self._expander.look(
                    pod, volume, calls, self._paths.target(volume, uid_of(pod))
                )
            except DriverMissing:
                return  # it is looked at again
            except (VolumeFailure, GrpcFailure) as error:
                what = f'NodeExpandVolume.NodeExpandVolume failed for volume "{volume.name}"'
                raise VolumeFailure(f"{what} : {error}", reason="VolumeResizeFailed") from error

    async def stats(self, uid: str) -> "dict[str, VolumeStats]":
        """What drivers say of a pod's volumes, by the PersistentVolume's name, or that of an inline
        volume; those that say nothing are left out."""
        found = {}
        for volume in self._users.of_pod(uid):
            try:
                calls = self._drivers.calls(volume.driver)
                stats = await calls.stats(volume, self._paths.target(volume, uid))
            except (DriverMissing, GrpcFailure) as error:
                log.debug("volume was not measured", volume=volume.name, error=error)
                continue
            if stats is not None:
                found[volume.name] = stats
        return found

    # Down.

    def has(self, uid: str) -> bool:
        """Is there anything that a driver may have mounted for the pod?"""
        return bool(self._users.of_pod(uid))

    async def unmount_pod(self, uid: str) -> None:
        """All that the pod has, or may have. Raises VolumeFailure."""
        for volume in self._users.of_pod(uid):
            async with self._locks.held(volume.key):
                await self._unpublish(volume, uid)
                self._users.remove(volume, uid)
                if not self._users.others(volume, uid):
                    self._expander.forget(volume)
            if self._users.is_idle(volume):
                self._unstage_soon(volume)
        self._looked.pop(uid, None)

    async def _unpublish(self, volume: CsiVolume, uid: str) -> None:
        what = f'UnmountVolume.TearDown failed for volume "{volume.name}"'
        failed = f"{what} : {PLUGIN}: Unmounter.TearDownAt failed"
        try:
            if await asyncio.to_thread(os.path.isdir, self._paths.publish_data(volume, uid)):
                calls = self._drivers.calls(volume.driver)
                with self._timed(volume, UNMAP if volume.block else UNMOUNT):
                    await self._mounting.unpublish(calls, volume, uid)
        except DriverMissing as error:
            raise VolumeFailure(f"{failed} to get CSI client: {error}") from error
        except (GrpcFailure, OSError) as error:
            raise VolumeFailure(f"{failed}: {error}") from error

    def sweep(self) -> None:
        """Everybody who may use something is known by now: what nobody uses is unstaged."""
        for volume in self._users.idle():
            self._unstage_soon(volume)

    async def driver_or(self, seconds: float) -> None:
        """Until a driver came or went, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._driver_came.wait()

    def _unstage_soon(self, volume: CsiVolume) -> None:
        if volume.key not in self._unstaging:
            self._unstaging.add(volume.key)
            self._tasks.start(f"unstage {volume.handle}", self._unstage(volume))

    async def _unstage(self, volume: CsiVolume) -> None:
        failures = 0
        try:
            while self._users.is_idle(volume):
                if await self._try_unstage(volume):
                    break
                failures += 1
                await self.driver_or(RETRY.delay(failures))
        finally:
            self._unstaging.discard(volume.key)
        self.in_use_changed()

    async def _try_unstage(self, volume: CsiVolume) -> bool:
        async with self._locks.held(volume.key):
            if not self._users.is_idle(volume):
                return True  # somebody came
            try:
                calls = self._drivers.calls(volume.driver)
                with self._timed(volume, UNMAP_DEVICE if volume.block else UNMOUNT_DEVICE):
                    await self._mounting.unstage(calls, volume)
            except (DriverMissing, GrpcFailure, OSError) as error:
                log.warning("volume was not unstaged, trying again", volume=volume.name,
                            driver=volume.driver, error=error)  # fmt: skip
                return False
            self._users.unstaged(volume)
            self._users.labels.pop(volume.key, None)
            return True


def _failed(volume: CsiVolume, step: str, block_step: str, why: object) -> VolumeFailure:
    """As upstream's events call the step."""
    if volume.block:
        text = f'MapVolume.{_told(block_step)} for volume "{volume.name}" : {why}'
        return VolumeFailure(text, reason="FailedMapVolume")
    return VolumeFailure(f'MountVolume.{_told(step)} for volume "{volume.name}" : {why}')


def _told(step: str) -> str:
    return step if " failed" in step else f"{step} failed"


@contextmanager
def _failing(volume: CsiVolume, step: str, block_step: str) -> Iterator[None]:
    try:
        yield
    except (VolumeFailure, NotAttached, GrpcFailure, OSError) as error:
        raise _failed(volume, step, block_step, error) from error


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []

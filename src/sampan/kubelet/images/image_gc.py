"""Image GC: by disk usage thresholds and by age unused.

Job: remember when an image was first seen and last used; choose (pure) and remove.
Invariant: an image that a container uses, or that is pinned, is never removed.
Invariant: an image without a digest of a registry is never removed: it was imported, and could not
    be pulled again.
Invariant: an image that is younger than `min_age_seconds` is never removed for its space.
Owner: Kubelet runs it every few minutes.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.contracts.runtime import Image, ObservedPod, Runtime, RuntimeFailure

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ImageGCPolicy:
    """As upstream's defaults. 100 percent: never for space; 0 seconds of age: never for age."""

    high_percent: int = 85
    low_percent: int = 80
    min_age_seconds: float = 120.0
    max_age_seconds: float = 0.0
    period_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What is remembered of an image. Never used: 0."""

    first: float
    used: float = 0.0


@dataclass(frozen=True, slots=True)
class Disk:
    capacity_bytes: int
    available_bytes: int


def update_seen(
    seen: Mapping[str, Seen], images: Sequence[Image], in_use: frozenset[str], now: float
) -> dict[str, Seen]:
    """What is known after another look; images that are gone are forgotten."""
    known = {image.id: seen.get(image.id, Seen(now)) for image in images}
    return {
        name: replace(item, used=now) if name in in_use else item for name, item in known.items()
    }


def bytes_to_free(disk: Disk, settings: ImageGCPolicy) -> int:
    """0 while the disk is not fuller than the upper threshold; else what leads to the lower."""
    if settings.high_percent >= 100 or disk.capacity_bytes <= 0:
        return 0
    used_percent = 100 - disk.available_bytes * 100 // disk.capacity_bytes
    if used_percent < settings.high_percent:
        return 0
    target = disk.capacity_bytes * (100 - settings.low_percent) // 100
    return max(0, target - disk.available_bytes)


def images_to_remove(
    images: Sequence[Image],
    seen: Mapping[str, Seen],
    in_use: frozenset[str],
    *,
    now: float,
    free_bytes: int,
    settings: ImageGCPolicy,
) -> list[Image]:
    """Least recently used first; those that are too old in any case."""
    unused = [item for item in images if item.id not in in_use and not item.pinned and item.digests]
    unused.sort(key=lambda item: (seen[item.id].used, seen[item.id].first))
    chosen = []
    for image in unused:
        known = seen[image.id]
        idle = now - max(known.used, known.first)
        too_old = bool(settings.max_age_seconds) and idle > settings.max_age_seconds
        may_go = now - known.first >= settings.min_age_seconds
        if not too_old and not (free_bytes > 0 and may_go):
            continue
        chosen.append(image)
        free_bytes -= image.size_bytes
    return chosen


class ImageGCManager:
    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        *,
        settings: ImageGCPolicy,
        clock: Clock,
        warn: Callable[[str, str], None],
        disk: Callable[[str], Disk] | None = None,
    ) -> None:
        """`directory`: on the disk of the images. `warn`: reason and message of a node's event."""
        self._runtime, self._directory, self._settings = runtime, directory, settings
        self._clock, self._warn, self._disk = clock, warn, disk or disk_of
        self._seen: dict[str, Seen] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.collect()
            except RuntimeFailure as error:
                log.info("image garbage collection: images were not listed", error=error)
            await self._clock.sleep(self._settings.period_seconds)

    async def collect(self, *, all_unused: bool = False) -> int:
        """Removes what may go; how many bytes that were. `all_unused`: under disk pressure."""
        images = await self._runtime.images()
        in_use = _used(images, await self._runtime.pods())
        now = self._clock.now()
        self._seen = update_seen(self._seen, images, in_use, now)
        disk = self._disk(self._directory)
        free = disk.capacity_bytes if all_unused else bytes_to_free(disk, self._settings)
        settings = replace(self._settings, min_age_seconds=0.0) if all_unused else self._settings
        chosen = images_to_remove(
            images, self._seen, in_use, now=now, free_bytes=free, settings=settings
        )
        freed = await self._remove(chosen)
        if free and freed < free and not all_unused:
            self._warn("FreeDiskSpaceFailed", _not_enough(free, freed, disk))
        return freed

    async def _remove(self, images: Sequence[Image]) -> int:
        """How many bytes that freed."""
        freed = 0
        for image in images:
            try:
                await self._runtime.remove_image(image.id)
            except RuntimeFailure as error:
                log.warning("image was not removed", image=image.tags or image.id, error=error)
                continue
            log.info("image removed", image=image.tags or image.id, bytes=image.size_bytes)
            freed += image.size_bytes
        return freed


def _used(images: Sequence[Image], pods: Sequence[ObservedPod]) -> frozenset[str]:
    """The ids of the images that containers were made of."""
    names = {name: image.id for image in images for name in (image.id, *image.tags, *image.digests)}
    told = {
        word
        for pod in pods
        for container in pod.containers
        for word in (container.image, container.image_id)
    }
    return frozenset(names[word] for word in told if word in names)


def _not_enough(wanted: int, freed: int, disk: Disk) -> str:
    used = 100 - disk.available_bytes * 100 // disk.capacity_bytes
    return (
        "Failed to garbage collect required amount of images. "
        f"Attempted to free {wanted} bytes, but only found {freed} bytes eligible to free. "
        f"The disk is {used}% full."
    )


def disk_of(directory: str) -> Disk:
    usage = shutil.disk_usage(directory)
    return Disk(usage.total, usage.free)

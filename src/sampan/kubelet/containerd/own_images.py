"""Images of our own in containerd: pause, and that of a first pod.

Job: import those that are not there yet.
"""

from collections.abc import Mapping
from pathlib import Path

from sampan.core.clock import Clock
from sampan.kubelet.contracts.runtime import Runtime
from sampan.kubelet.images.archive import ArchiveError, import_archive

_APPEARS_SECONDS = 10.0
_POLL_SECONDS = 0.003


async def ensure_images(
    runtime: Runtime, socket_path: str, directory: Path, archives: Mapping[str, bytes], clock: Clock
) -> None:
    """Import each archive into the containerd behind both, unless its image is there already."""
    for name, archive in archives.items():
        if await runtime.image(name) is not None:
            continue
        file = directory / "own-image.tar"
        file.write_bytes(archive)
        await import_archive(socket_path, file)
        file.unlink()
        deadline = clock.monotonic() + _APPEARS_SECONDS
        # CRI hears of images that others import by an event, some milliseconds later.
        while await runtime.image(name) is None:
            if clock.monotonic() > deadline:
                raise ArchiveError(f"{name} was imported, but the runtime does not show it")
            await clock.sleep(_POLL_SECONDS)

"""The images of a node without a container runtime: kept by the store, pulled from registries.

Job: one pull, from the name as somebody wrote it to the image; whom it asks.
Owner: the node's runtime; `sampan image` has one of its own over the same files.
"""

import platform
from collections.abc import Sequence
from pathlib import Path

from sampan.core.clock import Clock
from sampan.core.elf import architecture
from sampan.kubelet.images.reference import parse
from sampan.runtime.images.hosts import hosts_of
from sampan.runtime.images.image_store import ImageStore, StoredImage
from sampan.runtime.images.registry import Progress, Puller, Wanted
from sampan.runtime.images.registry_client import Login


class NodeImages:
    def __init__(self, store: ImageStore, directories: Sequence[Path], clock: Clock) -> None:
        """`directories`: as containerd's certs.d, they say whom to ask."""
        self.store, self._directories, self._clock = store, tuple(directories), clock

    async def pull(self, reference: str, login: Login | None, progress: Progress) -> StoredImage:
        """Raises InvalidReference, ImageError."""
        name = parse(reference)
        tag = name.digest or name.tag or "latest"
        wanted = Wanted(reference, name.registry, name.path, tag)
        hosts = hosts_of(name.registry, self._directories)
        with self.store.claims.claiming() as claim:
            machine = architecture(platform.machine())
            puller = Puller(self.store, machine, claim, self._clock, progress)
            manifest = await puller.pull(wanted, hosts, login)
            by_digest = f"{name.repository}@{manifest.digest}"
            return self.store.put(name.full_name(), manifest, repo_digest=by_digest)

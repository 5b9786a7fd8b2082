"""The images of a node without a container runtime: kept by the store, pulled from registries.

Job: one pull, from the name as somebody wrote it to the image; whom it asks.
Owner: the node's runtime; `sampan image` has one of its own over the same files.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from sampan.core.clock import Clock
from sampan.core.elf import architecture
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.images.reference import parse
from sampan.runtime.images.hosts import hosts_of
from sampan.runtime.images.image_store import ImageStore, StoredImage
from sampan.runtime.images.registry import Progress, Puller, Wanted
from sampan.runtime.images.registry_client import Login


@dataclass(frozen=True, slots=True)
class Registries:
    """Whom to ask for images."""

    mirrors: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by registry: URLs
    directories: tuple[Path, ...] = ()  # as containerd's certs.d


class NodeImages:
    def __init__(self, store: ImageStore, registries: Registries, clock: Clock) -> None:
        self.store, self._registries, self._clock = store, registries, clock

    async def pull(self, reference: str, login: Login | None, progress: Progress) -> StoredImage:
        """Raises InvalidReference, ImageError."""
        name = parse(reference)
        tag = name.digest or name.tag or "latest"
        wanted = Wanted(reference, name.registry, name.path, tag)
        hosts = hosts_of(name.registry, self._registries.mirrors, self._registries.directories)
        with self.store.claims.claiming() as claim:
            machine = architecture(platform.machine())
            puller = Puller(self.store, machine, claim, self._clock, progress)
            manifest = await puller.pull(wanted, hosts, login)
            by_digest = f"{name.repository}@{manifest.digest}"
            return self.store.put(name.full_name(), manifest, repo_digest=by_digest)

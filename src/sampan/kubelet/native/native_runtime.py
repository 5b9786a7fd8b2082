"""Containers without a container runtime beside us: the Runtime contract over crun and conmon.

Job: each method of the contract by the node's sandboxes, containers and images.
Invariant: nothing but RuntimeFailure (or cancellation) comes out.
Invariant: what was begun is finished, whoever gave up.
Invariant: containers, their logs and exit codes do not need this process: it may be killed, and
    finds everything again.
Owner: the kubelet; one per node.
"""

import asyncio
import contextlib
import os
import platform
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from sampan.core.clock import Clock
from sampan.core.tasks import all_of, finish
from sampan.core.telemetry.trace_context import note
from sampan.kubelet.contracts.local_streams import LocalStreams, StreamOptions
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    ContainerStatus,
    Credentials,
    ExecResult,
    HandlerFeatures,
    Image,
    ImageNotFound,
    Layer,
    LinuxResources,
    ObservedPod,
    RuntimeEvent,
    RuntimeFailure,
    RuntimeFeatures,
    RuntimeInfo,
    SandboxSpec,
    SandboxStatus,
)
from sampan.kubelet.images.reference import InvalidReference, parse
from sampan.kubelet.native import mapped_mounts
from sampan.kubelet.native.containers import Containers
from sampan.kubelet.native.failures import translated_failures
from sampan.kubelet.native.image_mounts import ContainerImages, UnpackedImage
from sampan.kubelet.native.node_images import NodeImages
from sampan.kubelet.native.records import layers_in
from sampan.kubelet.native.sandboxes import (
    OnAddresses,
    Sandboxes,
    SandboxNetwork,
    sandbox_status,
)
from sampan.kubelet.native.streams.answers import NativeStreams
from sampan.kubelet.native.users import image_user
from sampan.runtime.cgroup_moves import CgroupMoves
from sampan.runtime.images.claims import Claim
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.image_store import ImageStore, StoredImage
from sampan.runtime.images.registry_client import ImageMissing, Login
from sampan.runtime.programs import Programs, sealed
from sampan.runtime.spawn import Launch

_NO_URL = "this runtime answers clients itself"


class NativeRuntime:
    def __init__(
        self,
        root: Path,
        programs: Programs,
        network: SandboxNetwork,
        clock: Clock,
        images: NodeImages | None = None,
    ) -> None:
        """Without `images` it has those of its own directory, and no mirrors."""
        programs, self._sealed = sealed(programs)
        self._programs, self._network = programs, network
        root.mkdir(parents=True, exist_ok=True)
        self._images = images or NodeImages(image_store(root), (), clock)
        self.store = self._images.store
        self._sandboxes = Sandboxes(root / "sandboxes", programs, network, clock)
        self._moves = CgroupMoves()
        self._containers = Containers(root / "containers", programs, self._sandboxes, clock)
        self.local_streams: LocalStreams | None = NativeStreams(self)

    def call_with_addresses(self, on_addresses: OnAddresses) -> None:
        """Awaited for each new sandbox, before any container of it can send a packet."""
        self._sandboxes.on_addresses = on_addresses

    async def start(self) -> None:
        """Find again what an earlier process started, and remove what it left halfway."""
        await self._sandboxes.find_again()
        await self._containers.find_again()
        with translated_failures("the images"):
            await asyncio.to_thread(self.store.collect, unfinished=False)

    async def info(self) -> RuntimeInfo:
        maps_users = mapped_mounts.is_possible(platform.release(), self._programs.name)
        handler = HandlerFeatures(recursive_read_only=True, user_namespaces=maps_users)
        features = RuntimeFeatures(
            {"": handler, self._programs.name: handler},
            supplemental_groups_policy=True,
            image_volumes=True,
        )
        why_not = self._network.why_not_ready()
        lacks = f"Network plugin returns error: cni plugin not initialized: {why_not}"
        return RuntimeInfo(
            self._programs.name,
            self._programs.version,
            ready=True,
            network_ready=not why_not,
            message=lacks if why_not else "",
            features=features,
        )

    async def pods(self) -> Sequence[ObservedPod]:
        return [pod for uid in self._sandboxes.uids() if (pod := self._pod(uid)) is not None]

    async def pod(self, uid: str) -> ObservedPod | None:
        return self._pod(uid)

    def _pod(self, uid: str) -> ObservedPod | None:
        records = self._sandboxes.of_pod(uid)
        if not records:
            return None
        containers = self._containers.statuses({record.id for record in records})
        sandboxes = [sandbox_status(record) for record in records]
        return ObservedPod(
            uid,
            records[0].name,
            records[0].namespace,
            tuple(sorted(sandboxes, key=_newest_first)),
            tuple(sorted(containers, key=_newest_first)),
        )

    # ---- sandboxes

    async def run_sandbox(self, spec: SandboxSpec) -> str:
        self._moves.expect()
        return await self._sandboxes.run(spec)

    async def stop_sandbox(self, sandbox_id: str) -> None:
        stopping = (
            self._containers.stop(container, 0.0)
            for container in self._containers.of_sandbox(sandbox_id)
        )
        await all_of(stopping)
        await finish(self._sandboxes.stop(sandbox_id))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        if self._sandboxes.get(sandbox_id) is None:
            return
        await self.stop_sandbox(sandbox_id)
        removing = (
            self._containers.remove(container)
            for container in self._containers.of_sandbox(sandbox_id)
        )
        await all_of(removing)
        await finish(self._sandboxes.remove(sandbox_id))

    # ---- containers

    async def create_container(
        self, sandbox_id: str, container: ContainerSpec, sandbox: SandboxSpec
    ) -> str:
        surrounding = self._sandboxes.get(sandbox_id)
        if surrounding is None or not surrounding.ready:
            raise RuntimeFailure(f"sandbox {sandbox_id} is not running")
        self._moves.expect()
        with translated_failures("the image"), self.store.claims.claiming() as claim:
            volumes = {mount.image for mount in container.mounts if mount.image}
            images = ContainerImages(
                await self._unpacked(container.image, claim),
                {name: await self._unpacked(name, claim) for name in volumes},
            )
            return await finish(self._containers.create(surrounding, container, sandbox, images))

    async def _unpacked(self, name: str, claim: Claim) -> UnpackedImage:
        """Its layers stay there, as long as the claim does. Raises RuntimeFailure, ImageError."""
        image = self._find(name)
        if image is None:
            raise RuntimeFailure(f"image {name} is not there")
        claim.add(*image.config.diff_ids)
        return UnpackedImage(image, await self.store.lowers(image))

    async def start_container(self, container_id: str) -> None:
        with self._moves.start():
            await self._containers.start(container_id)

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        await self._containers.stop(container_id, grace_seconds)

    async def signal_container(self, container_id: str, signal: str, seconds: float) -> bool:
        return await self._containers.signal(container_id, signal, seconds)

    async def update_container(self, container_id: str, resources: LinuxResources) -> None:
        await self._containers.update(container_id, resources)

    async def remove_container(self, container_id: str) -> None:
        await self._containers.remove(container_id)

    # ---- images

    async def image(self, reference: str) -> Image | None:
        found = self._find(reference)
        return image_of(found) if found is not None else None

    async def images(self) -> Sequence[Image]:
        return [image_of(stored) for stored in self.store.images()]

    def _find(self, reference: str) -> StoredImage | None:
        found = self.store.find(reference)
        if found is None:
            with contextlib.suppress(InvalidReference):
                found = self.store.find(parse(reference).full_name())
        return found

    async def pull_image(self, reference: str, credentials: Credentials | None) -> str:
        came = 0

        def count(size: int) -> None:
            nonlocal came
            came += size

        try:
            return (await self._images.pull(reference, _login(credentials), count)).id
        except OSError as error:
            raise RuntimeFailure(f"the image: {error}") from error
        except InvalidReference as error:
            raise RuntimeFailure(str(error)) from error
        except ImageMissing as error:
            raise ImageNotFound(str(error)) from error
        except ImageError as error:
            raise RuntimeFailure(str(error)) from error
        finally:
            note("downloaded", str(came))

    async def remove_image(self, reference: str) -> None:
        found = self._find(reference)
        if found is not None:
            self.store.remove(found)
        with translated_failures("the image"):
            await asyncio.to_thread(self.store.collect)

    # ---- inside

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        return await self._containers.exec_sync(container_id, command, timeout_seconds)

    def exec_call(
        self, container_id: str, command: Sequence[str], *, terminal: bool
    ) -> tuple[Launch, Path, Callable[[], None]]:
        return self._containers.exec_call(container_id, command, terminal=terminal)

    def running_container(self, container_id: str) -> Path:
        return self._containers.running(container_id)

    def closes_stdin(self, container_id: str) -> bool:
        return self._containers.closes_stdin(container_id)

    def network_namespace(self, sandbox_id: str) -> str:
        return self._sandboxes.network_namespace(sandbox_id)

    async def exec_url(self, container_id: str, streams: StreamOptions) -> str:
        raise RuntimeFailure(_NO_URL)

    async def attach_url(self, container_id: str, streams: StreamOptions) -> str:
        raise RuntimeFailure(_NO_URL)

    async def port_forward_url(self, sandbox_id: str) -> str:
        raise RuntimeFailure(_NO_URL)

    async def reopen_log(self, container_id: str) -> None:
        self._containers.reopen_log(container_id)

    async def layers(self) -> Mapping[str, Layer]:
        return {name: await self._containers.layer(name) for name in self._containers.ids()}

    async def layer_bytes(self, container_id: str) -> int:
        return (await self._containers.layer(container_id)).used_bytes

    async def checkpoint(self, container_id: str, path: str, seconds: float) -> None:
        raise RuntimeFailure("checkpoints are not supported by --runtime native")

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        with self._containers.listening() as events:
            while True:
                yield await events.get()

    async def close(self) -> None:
        """Containers go on: conmon has them."""
        self._containers.close()
        await self._sandboxes.close()
        if self._sealed >= 0:
            os.close(self._sealed)
            self._sealed = -1


def image_store(root: Path, shared: Path | None = None) -> ImageStore:
    """Of the node with that directory; `shared`: where blobs and layers of several are."""
    return ImageStore(root / "images", shared, lambda home: layers_in(home.parent / "containers"))


def image_of(stored: StoredImage) -> Image:
    uid, username = image_user(stored.config.user)
    return Image(
        stored.id,
        stored.names,
        stored.repo_digests,
        stored.size,
        uid=uid,
        username=username,
        pinned=stored.pinned,
    )


def _login(credentials: Credentials | None) -> Login | None:
    if credentials is None or not credentials.is_something:
        return None
    return Login(credentials.username, credentials.password, credentials.registry_token)


def _newest_first(one: SandboxStatus | ContainerStatus) -> tuple[int, float]:
    return -one.attempt, -one.created_at

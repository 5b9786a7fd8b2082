"""Inputs of a container's start: images, ConfigMaps and Secrets, Services, volumes.

Job: read it before anything of the pod is made, pull its images, mount its volumes.
Invariant: an image that cannot be had, or not yet, holds up the containers that need it, and as
    upstream those that start after them; no others.
Invariant: holds no policy: perform.py says what becomes of a pod that lacks something.
Owner: Performer, one value for each plan.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, namespace_of, spec_of, uid_of
from sampan.api.resources import SECRETS
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import ahead
from sampan.kubelet.container_spec.env_files import EnvFile, EnvText, env_files_of
from sampan.kubelet.container_spec.environment import program_room
from sampan.kubelet.container_spec.service_environment import service_variables
from sampan.kubelet.context import LANE, NodeContext
from sampan.kubelet.contracts.runtime import Image, RuntimeFeatures
from sampan.kubelet.contracts.spec import find_container
from sampan.kubelet.contracts.volumes_hook import MountedVolume, Objects
from sampan.kubelet.images.image_manager import ImageFailure, ImageManager
from sampan.kubelet.images.image_volumes import check_image_volumes, image_volumes, mounted_by
from sampan.kubelet.pods.parts import PodTools
from sampan.kubelet.pods.planning.actions import StartContainer

# How long the first list of the services is waited for: an API that does not give it holds nobody
# up in silence.
SERVICES_SECONDS = 10.0
T = TypeVar("T")
Services = Callable[[], Awaitable[Iterable[Obj]]]


@dataclass(slots=True)
class StartInputs:
    """Filled while the plan is carried out."""

    # By container and by volume; and what came of those that were waited for.
    pulls: Mapping[str, Awaitable[Image | ImageFailure]] = field(default_factory=dict)
    volume_pulls: Mapping[str, Awaitable[Image | ImageFailure]] = field(default_factory=dict)
    volume_images: dict[str, Image] = field(default_factory=dict)
    objects: Objects = field(default_factory=dict)
    # The variables of Services; None: they were not to be had.
    services: Mapping[str, str] | None = field(default_factory=dict)
    volumes: Mapping[str, MountedVolume] = field(default_factory=dict)

    def mounts(self) -> Mapping[str, MountedVolume]:
        """The volumes, with the images behind those that the runtime mounts itself."""
        images = {
            name: MountedVolume("", read_only=True, image=found.id)
            for name, found in self.volume_images.items()
        }
        return {**self.volumes, **images} if images else self.volumes

    async def image_of(self, container: Obj) -> Image:
        """Raises the ImageFailure of the first that the container needs and cannot have."""
        image = _had(await self.pulls[container["name"]])
        for name in sorted(mounted_by(container) & self.volume_pulls.keys()):
            self.volume_images[name] = _had(await self.volume_pulls[name])
        return image


def _had(pulled: Image | ImageFailure) -> Image:
    if isinstance(pulled, ImageFailure):
        raise pulled
    return pulled


@dataclass(frozen=True, slots=True)
class _Later:
    """Begun by whoever waits for it."""

    begin: Callable[[], Awaitable[Image | ImageFailure]]

    def __await__(self) -> Generator[Any, None, Image | ImageFailure]:
        return self.begin().__await__()


class InputReader:
    def __init__(
        self,
        context: NodeContext,
        tools: PodTools,
        puller: ImageManager,
        services: Services,
        features: Callable[[], RuntimeFeatures],
    ) -> None:
        self._client, self._traces = context.client, context.metrics.traces
        self._volumes, self._events = tools.volumes, tools.events
        self._puller, self._services, self._features = puller, services, features

    async def read(self, pod: Obj, inputs: StartInputs) -> None:
        """What environments and volumes are made of. Raises VolumeFailure."""
        await self._traced(pod, "read objects", self._read(pod, inputs))

    @asynccontextmanager
    async def pulling(
        self, pod: Obj, starts: Iterable[StartContainer], inputs: StartInputs
    ) -> AsyncIterator[None]:
        """The images of the containers, and those that are volumes, while the block goes on: each
        container waits for its own. What may be held back is pulled when it starts."""
        secrets = await self._pull_secrets(pod)

        def pull(name: str) -> Coroutine[Any, Any, Image | ImageFailure]:
            found = find_container(pod, name)
            assert found is not None, name
            return self._image(pod, found[1], secrets, f"image of {name}")

        now = {start.name: pull(start.name) for start in starts if not start.held}
        later = {start.name: _Later(partial(pull, start.name)) for start in starts if start.held}
        volumes = {
            name: self._image(pod, image, secrets, f"image of volume {name}")
            for name, image in image_volumes(pod).items()
        }
        async with ahead(now) as begun, ahead(volumes) as inputs.volume_pulls:
            inputs.pulls = {**begun, **later}
            yield

    async def mount(self, pod: Obj, inputs: StartInputs) -> None:
        """Raises VolumeFailure."""
        prepared = self._volumes.prepare(pod, inputs.objects)
        inputs.volumes = await self._traced(pod, "volumes", prepared)

    async def env_files(
        self, container: Obj, mounts: Mapping[str, MountedVolume]
    ) -> dict[EnvFile, EnvText]:
        """Raises ConfigError."""
        found, room = {}, program_room()
        for volume, path in env_files_of(container):
            if place := mounts.get(volume):
                text = await self._volumes.read(place, path)
                room.take(len(text or ""))
                file = found[volume, path] = EnvText(f"{place.host_path}/{path}", text)
                if text:
                    await asyncio.to_thread(file.values)
        return found

    async def _traced(self, pod: Obj, step: str, work: Awaitable[T]) -> T:
        return await self._traces.timed(uid_of(pod), LANE, step, work)

    async def _read(self, pod: Obj, inputs: StartInputs) -> None:
        inputs.services = await self._service_variables(pod)
        inputs.objects = await self._volumes.objects(pod)
        check_image_volumes(pod, self._features())
        await self._volumes.check(pod, inputs.objects)

    async def _service_variables(self, pod: Obj) -> Mapping[str, str] | None:
        linked = spec_of(pod).get("enableServiceLinks") is not False
        try:
            async with asyncio.timeout(SERVICES_SECONDS):
                found = await self._services()
        except TimeoutError:
            return None  # as upstream: said of each container that would need them
        return service_variables(found, namespace_of(pod), service_links=linked)

    async def _image(
        self, pod: Obj, wanted: Obj, secrets: Sequence[Obj], step: str
    ) -> Image | ImageFailure:
        try:
            return await self._traced(pod, step, self._puller.ensure(pod, wanted, secrets))
        except ImageFailure as failure:
            return failure

    async def _pull_secrets(self, pod: Obj) -> list[Obj]:
        """As upstream's getPullSecretsForPod: once for all images of a pod."""
        secrets: list[Obj] = []
        missing: list[str] = []
        for reference in spec_of(pod).get("imagePullSecrets") or ():
            name = reference.get("name")
            if not name:
                continue
            try:
                secrets.append(await self._client.get(SECRETS, namespace_of(pod), name))
            except ApiError:
                missing.append(name)
        if missing:
            self._events.warning(
                pod,
                "FailedToRetrieveImagePullSecret",
                f"Unable to retrieve some image pull secrets ({', '.join(missing)}); "
                "attempting to pull the image may not succeed.",
            )
        return secrets

"""Inputs of a container's start: images, ConfigMaps and Secrets, Services, volumes.

Job: read it before anything of the pod is made, pull its images, mount its volumes.
Invariant: an image that cannot be had keeps the containers that need it from starting, no others.
Invariant: holds no policy: perform.py says what becomes of a pod that lacks something.
Owner: Performer, one value for each plan.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from typing import TypeVar

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, namespace_of, spec_of, uid_of
from sampan.api.resources import SECRETS
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of
from sampan.kubelet.container_spec.service_environment import service_variables
from sampan.kubelet.context import LANE, NodeContext
from sampan.kubelet.contracts.runtime import Image, RuntimeFeatures
from sampan.kubelet.contracts.spec import find_container
from sampan.kubelet.contracts.volumes_hook import MountedVolume, Objects
from sampan.kubelet.images.image_manager import ImageFailure, ImageManager
from sampan.kubelet.images.image_volumes import check_image_volumes, image_volumes, mounted_by
from sampan.kubelet.pods.parts import PodTools

# How long the first list of the services is waited for: an API that does not give it holds nobody
# up in silence.
SERVICES_SECONDS = 10.0
T = TypeVar("T")
Services = Callable[[], Awaitable[Iterable[Obj]]]


@dataclass(slots=True)
class StartInputs:
    """Filled while the plan is carried out."""

    images: dict[str, Image | ImageFailure] = field(default_factory=dict)
    volume_images: dict[str, Image | ImageFailure] = field(default_factory=dict)
    objects: Objects = field(default_factory=dict)
    # The variables of Services; None: they were not to be had.
    services: Mapping[str, str] | None = field(default_factory=dict)
    volumes: Mapping[str, MountedVolume] = field(default_factory=dict)

    def mounts(self) -> Mapping[str, MountedVolume]:
        """The volumes, with the images behind those that the runtime mounts itself."""
        images = {
            name: MountedVolume("", read_only=True, image=found.id)
            for name, found in self.volume_images.items()
            if isinstance(found, Image)
        }
        return {**self.volumes, **images} if images else self.volumes

    def image_of(self, container: Obj) -> Image:
        """Raises the ImageFailure of the first that the container needs and that is not there."""
        image = self.images[container["name"]]
        mounted = (self.volume_images.get(name) for name in sorted(mounted_by(container)))
        for needed in (image, *mounted):
            if isinstance(needed, ImageFailure):
                raise needed
        assert isinstance(image, Image)
        return image


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

    async def pull(self, pod: Obj, names: Iterable[str], inputs: StartInputs) -> None:
        """The images of the containers, and those that are volumes."""
        await all_of(
            [
                *(self._pull_image(pod, name, inputs) for name in names),
                *(
                    self._pull_volume_image(pod, name, wanted, inputs)
                    for name, wanted in image_volumes(pod).items()
                ),
            ]
        )

    async def mount(self, pod: Obj, inputs: StartInputs) -> None:
        """Raises VolumeFailure."""
        prepared = self._volumes.prepare(pod, inputs.objects)
        inputs.volumes = await self._traced(pod, "volumes", prepared)

    async def _traced(self, pod: Obj, step: str, work: Awaitable[T]) -> T:
        return await self._traces.timed(uid_of(pod), LANE, step, work)

    async def _read(self, pod: Obj, inputs: StartInputs) -> None:
        inputs.services = await self._service_variables(pod)
        inputs.objects = await self._volumes.objects(pod)
        check_image_volumes(pod, self._features())
        self._volumes.check(pod, inputs.objects)

    async def _service_variables(self, pod: Obj) -> Mapping[str, str] | None:
        linked = spec_of(pod).get("enableServiceLinks") is not False
        try:
            async with asyncio.timeout(SERVICES_SECONDS):
                found = await self._services()
        except TimeoutError:
            return None  # as upstream: said of each container that would need them
        return service_variables(found, namespace_of(pod), service_links=linked)

    async def _pull_image(self, pod: Obj, name: str, inputs: StartInputs) -> None:
        found = find_container(pod, name)
        assert found is not None, name
        inputs.images[name] = await self._image(pod, found[1], f"image of {name}")

    async def _pull_volume_image(
        self, pod: Obj, name: str, wanted: Obj, inputs: StartInputs
    ) -> None:
        inputs.volume_images[name] = await self._image(pod, wanted, f"image of volume {name}")

    async def _image(self, pod: Obj, wanted: Obj, step: str) -> Image | ImageFailure:
        try:
            secrets = await self._pull_secrets(pod)
            return await self._traced(pod, step, self._puller.ensure(pod, wanted, secrets))
        except ImageFailure as failure:
            return failure

    async def _pull_secrets(self, pod: Obj) -> list[Obj]:
        secrets = []
        for reference in spec_of(pod).get("imagePullSecrets") or ():
            name = reference.get("name", "")
            try:
                secrets.append(await self._client.get(SECRETS, namespace_of(pod), name))
            except ApiError:
                self._events.warning(
                    pod,
                    "FailedToRetrieveImagePullSecret",
                    f"Unable to retrieve some image pull secrets ({name}); "
                    "attempting to pull the image may not succeed.",
                )
        return secrets

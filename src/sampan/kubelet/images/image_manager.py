"""ImageManager: pull policies, credentials, pull back-off and its events.

Job: pull policy, one pull per image at a time, credentials, backoff, events.
Invariant: never two pulls of one image at once, never more than `parallel` pulls in all.
Invariant: every failure is an ImageFailure with the reason that the container's status shows.
Owner: one per node.
"""

import asyncio
from collections.abc import Callable, Sequence

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.durations import seconds_text
from sampan.core.backoff import Backoff
from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.lock_per_key import LockPerKey
from sampan.core.telemetry.trace_context import note
from sampan.kubelet.contracts.runtime import Credentials, Image, Runtime, RuntimeFailure
from sampan.kubelet.images.access import ImageAccess
from sampan.kubelet.images.credentials import ImageCredentials
from sampan.kubelet.images.reference import InvalidReference, Reference, parse, with_default_tag

Emit = Callable[[Obj, str, str, str, str], None]
"""pod, type (Normal or Warning), reason, message, the container's name"""

BACKOFF = Backoff(first_seconds=10.0, cap_seconds=300.0)
# As upstream: an image that failed is forgotten after twice the longest wait.
_FORGET_SECONDS = 600.0
_REMEMBERED = 10_000


class ImageFailure(Exception):
    """`reason` is the container's waiting reason, the text its message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Failed:
    times: int
    at: float
    wait_seconds: float
    why: str  # "ErrImagePull: …"


class ImageManager:
    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        emit: Emit,
        credentials: ImageCredentials,
        access: ImageAccess,
        *,
        parallel: int = 4,
    ) -> None:
        self._runtime, self._clock, self._emit = runtime, clock, emit
        self._credentials, self._access = credentials, access
        self._slots = asyncio.Semaphore(parallel)
        self._pulling = LockPerKey()
        self._one_by_one = LockPerKey()  # an image that two containers of a pod want
        self._failed: Recent[tuple[str, str], _Failed] = Recent(_REMEMBERED)

    @property
    def keeps_secrets(self) -> bool:
        """Is there an image here that not every pod may use?"""
        return self._access.keeps_secrets

    async def ensure(self, pod: Obj, container: Obj, secrets: Sequence[Obj]) -> Image:
        """The image of the container, pulled if its policy says so. Raises ImageFailure."""
        name = container.get("image", "")
        note("image", name)
        async with self._one_by_one.held((uid_of(pod), name)):
            return await self._ensured(pod, container, name, secrets)

    async def _ensured(self, pod: Obj, container: Obj, name: str, secrets: Sequence[Obj]) -> Image:
        reference, full = self._parse(pod, container)
        try:
            present = await self._runtime.image(full)
        except RuntimeFailure as error:
            message = f'Failed to inspect image "{name}": {error}'
            self._say(pod, container, "Warning", "InspectFailed", message)
            raise ImageFailure("ImageInspectError", message) from error
        policy = container.get("imagePullPolicy") or default_policy(reference)
        usable = present is not None and await self._may_use(present, reference, secrets)
        if policy == "Always" or (policy == "IfNotPresent" and not usable):
            return await self._pull_with_backoff(pod, container, reference, full, secrets)
        if present is None or not usable:
            message = f'Container image "{name}" is not present with pull policy of Never'
            self._say(pod, container, "Warning", "ErrImageNeverPull", message)
            raise ImageFailure("ErrImageNeverPull", message)
        message = (
            f'Container image "{name}" already present on machine and can be accessed by the pod'
        )
        self._say(pod, container, "Normal", "Pulled", message)
        return present

    async def _may_use(self, image: Image, reference: Reference, secrets: Sequence[Obj]) -> bool:
        """Could this pod have pulled it? One that somebody had to log in for is not everybody's."""
        if self._access.is_everybodys(image, reference.repository):
            return True
        found = await self._credentials.of(reference, secrets)
        return self._access.may_use(image, reference.repository, found.all)

    def _parse(self, pod: Obj, container: Obj) -> tuple[Reference, str]:
        name = container.get("image", "")
        try:
            return parse(name), with_default_tag(name)
        except InvalidReference as error:
            message = f'Failed to apply default image tag "{name}": {error}'
            self._say(pod, container, "Warning", "InspectFailed", message)
            raise ImageFailure("InvalidImageName", message) from error

    async def _pull_with_backoff(
        self, pod: Obj, container: Obj, reference: Reference, full: str, secrets: Sequence[Obj]
    ) -> Image:
        name = container.get("image", "")
        key = (uid_of(pod), name)
        failed = self._failed.get(key)
        if failed is not None and self._clock.monotonic() < failed.at + failed.wait_seconds:
            message = f'Back-off pulling image "{name}"'
            self._say(pod, container, "Normal", "BackOff", message)
            raise ImageFailure("ImagePullBackOff", f"{message}: {failed.why}")
        self._say(pod, container, "Normal", "Pulling", f'Pulling image "{name}"')
        asked = self._clock.monotonic()
        try:
            found = await self._credentials.of(reference, secrets)
            image, by, pull_seconds = await self._pull(full, found.all)
        except RuntimeFailure as error:
            # As upstream: a code that says nothing only makes the sentence harder to read.
            why = str(error).removeprefix(_SAYS_NOTHING)
            reason, message = _reason_and_message(name, why)
            self._say(pod, container, "Warning", "Failed", f'Failed to pull image "{name}": {why}')
            self._note_failure(key, f"{reason}: {message}")
            raise ImageFailure(reason, message) from error
        self._failed.pop(key, None)
        self._access.pulled(image.id, reference.repository, None if by in found.of_node else by)
        waited = self._clock.monotonic() - asked
        note("pulled", seconds_text(pull_seconds))
        note("bytes", str(image.size_bytes))
        self._say(
            pod,
            container,
            "Normal",
            "Pulled",
            f'Successfully pulled image "{name}" in {seconds_text(pull_seconds)} '
            f"({seconds_text(waited)} including waiting). Image size: {image.size_bytes} bytes.",
        )
        return image

    async def _pull(
        self, full: str, credentials: Sequence[Credentials]
    ) -> tuple[Image, Credentials | None, float]:
        """The image, with what it was pulled, and how long that took."""
        async with self._pulling.held(full), self._slots:
            began = self._clock.monotonic()
            image_id, by = await self._try_each(full, credentials)
            took = self._clock.monotonic() - began
            image = await self._runtime.image(image_id) or await self._runtime.image(full)
            if image is None:
                raise RuntimeFailure(f'image "{full}" is gone right after it was pulled')
            return image, by, took

    async def _try_each(
        self, full: str, credentials: Sequence[Credentials]
    ) -> tuple[str, Credentials | None]:
        """As upstream: without credentials only where there are none for this image."""
        last: RuntimeFailure | None = None
        for credential in credentials or (None,):
            try:
                return await self._runtime.pull_image(full, credential), credential
            except RuntimeFailure as error:
                last = error
        assert last is not None
        raise last

    def _note_failure(self, key: tuple[str, str], why: str) -> None:
        now = self._clock.monotonic()
        before = self._failed.get(key)
        times = before.times + 1 if before and now - before.at < _FORGET_SECONDS else 1
        self._failed[key] = _Failed(times, now, BACKOFF.delay(times), why)

    def _say(self, pod: Obj, container: Obj, kind: str, reason: str, message: str) -> None:
        self._emit(pod, kind, reason, message, container.get("name", ""))


_SAYS_NOTHING = "rpc error: code = Unknown desc = "


def default_policy(reference: Reference) -> str:
    """What the API server fills in; static pods may come without."""
    untagged = not reference.digest and reference.tag in ("", "latest")
    return "Always" if untagged else "IfNotPresent"


def _reason_and_message(name: str, error: str) -> tuple[str, str]:
    """Runtimes mark two kinds of failure by the beginning of the text."""
    detail = error.partition("desc = ")[2] or error
    for reason, what in (
        ("RegistryUnavailable", "the registry is unavailable"),
        ("SignatureValidationFailed", "the signature validation failed"),
    ):
        if detail.startswith(reason):
            rest = detail.removeprefix(reason)
            return reason, f"image pull failed for {name} because {what}{rest}"
    return "ErrImagePull", error

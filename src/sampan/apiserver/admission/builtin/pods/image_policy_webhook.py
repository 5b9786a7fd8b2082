"""ImagePolicyWebhook: asks a backend which images may run.

Job: an ImageReview for every pod with new images; answers are remembered for a while.
Invariant: a backend that cannot be asked counts as the configuration says, and the pod says so.
Invariant: at most MOST answers are remembered.
"""

from collections.abc import Awaitable

import orjson

from sampan.api.objects import Obj, annotations_of
from sampan.apiserver.admission.chain import UPDATE, Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.settings import ImagePolicySettings
from sampan.apiserver.outside.webhook_client import Caller, CallFailed
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock

MOST = 1024
ATTEMPTS = 5
TIMEOUT_SECONDS = 30.0
_OPEN = "alpha.image-policy.k8s.io/failed-open"
_NOTES = "imagepolicywebhook.image-policy.k8s.io/"
_FIELDS = ("containers", "initContainers", "ephemeralContainers")


def plugin(initializer: PluginInitializer) -> Steps:
    settings = initializer.settings.image_policy
    assert settings is not None, "cmd/ refuses to switch the plugin on without a backend"
    caller = Caller(settings.target)
    initializer.at_stop.append(caller.close)
    return Steps(validate=ImagePolicy(caller, settings, initializer.clock).validate)


class ImagePolicy:
    def __init__(self, caller: Caller, settings: ImagePolicySettings, clock: Clock) -> None:
        self._caller, self._settings, self._clock = caller, settings, clock
        self._known: Bounded[bytes, tuple[float, Obj]] = Bounded(MOST)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        if attributes.obj is None or attributes.subresource not in ("", "ephemeralcontainers"):
            return None
        if attributes.operation == UPDATE and images_of(attributes.obj) == images_of(
            attributes.old or {}
        ):
            return None
        return self._check(attributes, attributes.obj)

    async def _check(self, attributes: Attributes, pod: Obj) -> None:
        review = review_of(pod, attributes.namespace)
        key = orjson.dumps(review["spec"])
        expires, status = self._known.get(key, (0.0, {}))
        if expires <= self._clock.monotonic():
            try:
                status = (await self._ask(review)).get("status") or {}
            except CallFailed as error:
                self._decide_failure(attributes, error)
                return
            self._remember(key, status)
        for name, value in (status.get("auditAnnotations") or {}).items():
            attributes.audit[_NOTES + name] = str(value)
        if status.get("allowed") is not True:
            why = "image policy webhook backend denied one or more images"
            reason = status.get("reason")
            raise rejection(attributes, f"{why}: {reason}" if reason else why)

    async def _ask(self, review: Obj) -> Obj:
        for attempt in range(ATTEMPTS - 1):
            try:
                return await self._caller.post(review, TIMEOUT_SECONDS)
            except CallFailed:
                await self._clock.sleep(self._settings.retry_seconds * 1.5**attempt)
        return await self._caller.post(review, TIMEOUT_SECONDS)

    def _remember(self, key: bytes, status: Obj) -> None:
        settings = self._settings
        allowed = status.get("allowed") is True
        seconds = settings.allowed_seconds if allowed else settings.denied_seconds
        self._known[key] = (self._clock.monotonic() + seconds, status)

    def _decide_failure(self, attributes: Attributes, error: CallFailed) -> None:
        if not self._settings.allows_on_failure:
            raise rejection(attributes, str(error)) from error
        attributes.audit[_NOTES + "failed-open"] = "true"
        attributes.warnings.append(f"{_OPEN}: the image policy backend could not be asked")


def review_of(pod: Obj, namespace: str) -> Obj:
    notes = annotations_of(pod)
    spec: Obj = {"containers": [{"image": item} for item in images_of(pod)], "namespace": namespace}
    shown = {key: notes[key] for key in notes if ".image-policy.k8s.io/" in key}
    if shown:
        spec["annotations"] = shown
    return {"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "spec": spec}


def images_of(pod: Obj) -> list[str]:
    spec = pod.get("spec") or {}
    return [str(item.get("image") or "") for field in _FIELDS for item in spec.get(field) or ()]

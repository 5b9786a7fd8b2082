"""AlwaysPullImages: every container pulls its image, so that its credentials are checked.

Job: set every pull policy to Always; refuse any other that came after.
"""

from collections.abc import Iterator

from sampan.api.errors import not_supported
from sampan.api.objects import Obj
from sampan.api.resources import PODS
from sampan.apiserver.admission.chain import UPDATE, Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_FIELDS = ("initContainers", "containers", "ephemeralContainers")


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(_pull_always, _pulls_always)


def _pull_always(attributes: Attributes) -> None:
    if _concerns(attributes) and attributes.obj is not None:
        for _, holder, field in _policies(attributes.obj):
            holder[field] = "Always"


def _pulls_always(attributes: Attributes) -> None:
    if not _concerns(attributes) or attributes.obj is None:
        return
    for path, holder, field in _policies(attributes.obj):
        if holder.get(field) != "Always":
            why = not_supported(path, holder.get(field) or "", ["Always"])
            raise rejection(attributes, f"{why.field}: {why.message}")


def _concerns(attributes: Attributes) -> bool:
    """As upstream: an update that brings no new image is none of its business."""
    if attributes.obj is None or attributes.subresource not in ("", "ephemeralcontainers"):
        return False
    if attributes.operation != UPDATE or attributes.resource is not PODS:
        return True
    return not _images(attributes.obj) <= _images(attributes.old or {})


def _images(pod: Obj) -> set[str]:
    spec = pod.get("spec") or {}
    return {item.get("image") or "" for field in _FIELDS for item in spec.get(field) or ()}


def _policies(pod: Obj) -> Iterator[tuple[str, Obj, str]]:
    """(path, what holds the policy, its field)."""
    spec = pod.get("spec") or {}
    for field in _FIELDS:
        for index, container in enumerate(spec.get(field) or ()):
            yield f"spec.{field}[{index}].imagePullPolicy", container, "imagePullPolicy"
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image"):
            yield f"spec.volumes[{index}].image.pullPolicy", volume["image"], "pullPolicy"

"""LimitRanger: defaults and bounds of requests and limits, from the namespace's LimitRanges.

Job: fill in what a pod leaves open; refuse what lies outside a LimitRange.
Invariant: of thousands of containers by thousands of resources no more is made than could be
    stored, or read.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from sampan.api import quantity
from sampan.api.errors import ObjectTooLarge, forbidden
from sampan.api.objects import Obj, meta_of
from sampan.api.quantity import Quantity
from sampan.api.resources import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS
from sampan.api.rules import pod_resources
from sampan.apiserver.admission.chain import CREATE, Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.registry.generic import LARGEST_OBJECT_BYTES, TOO_LARGE

ANNOTATION = "kubernetes.io/limit-ranger"
MOST_TROUBLES = 500  # that an answer names
_CONTAINERS = {"containers": "container", "initContainers": "init container"}
Amounts = Mapping[str, Quantity]


def plugin(initializer: PluginInitializer) -> Steps:
    kind = initializer.registry.kind(LIMIT_RANGES)

    def limits(attributes: Attributes) -> list[Obj]:
        return [
            limit
            for key in kind.keys(attributes.namespace)
            for limit in (kind.items[key].obj.get("spec") or {}).get("limits") or ()
        ]

    def mutate(attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_main(PODS):
            return
        if attributes.operation == CREATE:
            _fill(pod, [limit for limit in limits(attributes) if limit.get("type") == "Container"])

    def validate(attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None or meta_of(obj).get("deletionTimestamp"):
            return
        is_pod = attributes.resource is PODS and (
            attributes.subresource == "resize"
            or (not attributes.subresource and attributes.operation == CREATE)
        )
        if is_pod or attributes.is_main(PERSISTENT_VOLUME_CLAIMS):
            found = limits(attributes)
            trouble = _pod_trouble(obj, found) if is_pod else _claim_trouble(obj, found)
            why = list(islice(trouble, MOST_TROUBLES))
            if why:
                text = why[0] if len(why) == 1 else f"[{', '.join(why)}]"
                raise forbidden(attributes.resource.plural, "", attributes.called, text)

    return Steps(mutate, validate, kind)


def _fill(pod: Obj, limits: list[Obj]) -> None:
    requests = _merge(limits, "defaultRequest")
    tops = _merge(limits, "default")
    if not requests and not tops:
        return
    spec = pod.setdefault("spec", {})
    each = sum(len(name) + 1 for names in (requests, tops) for name in names)
    if each * sum(len(spec.get(field) or ()) for field in _CONTAINERS) > LARGEST_OBJECT_BYTES:
        raise ObjectTooLarge(TOO_LARGE)
    said = []
    for field, words in _CONTAINERS.items():
        for container in spec.get(field) or ():
            said += _with_defaults(container, requests, tops, words)
    if said:
        notes = pod["metadata"].setdefault("annotations", {})
        notes[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"


def _merge(limits: list[Obj], kind: str) -> dict[str, str]:
    """As upstream: of several limit ranges the last one's word counts."""
    return {name: text for limit in limits for name, text in (limit.get(kind) or {}).items()}


def _with_defaults(
    container: Obj, requests: dict[str, str], tops: dict[str, str], words: str
) -> list[str]:
    said = []
    for field, defaults, word in (("requests", requests, "request"), ("limits", tops, "limit")):
        resources = container.get("resources") or {}
        own = resources.get(field) or {}
        new = sorted(name for name in defaults if name not in own)
        if new:
            filled = {**own, **{name: defaults[name] for name in new}}
            container["resources"] = {**resources, field: filled}
            said.append(f"{', '.join(new)} {word} for {words} {container.get('name')}")
    return said


def _amounts(written: Mapping[str, str] | None) -> dict[str, Quantity]:
    return {name: quantity.parse(str(text)) for name, text in (written or {}).items()}


def _pod_trouble(pod: Obj, limits: list[Obj]) -> Iterator[str]:
    spec = pod.get("spec") or {}
    for limit in limits:
        kind = limit.get("type")
        if kind == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                asked, most = (_amounts(resources.get(item)) for item in ("requests", "limits"))
                yield from _trouble(limit, asked, most)
        elif kind == "Pod":
            yield from _trouble(limit, pod_resources.requests(pod), pod_resources.limits(pod))


def _claim_trouble(claim: Obj, limits: list[Obj]) -> Iterator[str]:
    resources = (claim.get("spec") or {}).get("resources") or {}
    asked = _amounts(resources.get("requests"))
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            for name, least in _amounts(limit.get("min")).items():
                if name in asked and asked[name] < least:
                    yield (
                        f"minimum {name} usage per PersistentVolumeClaim is {least}, but request "
                        f"is {asked[name]}"
                    )
            for name, most in _amounts(limit.get("max")).items():
                if name in asked and most < asked[name]:
                    yield (
                        f"maximum {name} usage per PersistentVolumeClaim is {most}, but request "
                        f"is {asked[name]}"
                    )


def _trouble(limit: Obj, asked: Amounts, most: Amounts) -> Iterator[str]:
    kind = limit.get("type")
    for name, least in _amounts(limit.get("min")).items():
        start = f"minimum {name} usage per {kind} is {least}"
        if name not in asked:
            yield f"{start}.  No request is specified"
        elif asked[name] < least:
            yield f"{start}, but request is {asked[name]}"
        elif name in most and most[name] < least:
            yield f"{start}, but limit is {most[name]}"
    for name, top in _amounts(limit.get("max")).items():
        start = f"maximum {name} usage per {kind} is {top}"
        if name not in most:
            yield f"{start}.  No limit is specified"
        elif top < most[name]:
            yield f"{start}, but limit is {most[name]}"
        elif name in asked and top < asked[name]:
            yield f"{start}, but request is {asked[name]}"
    for name, ratio in _amounts(limit.get("maxLimitRequestRatio")).items():
        start = f"{name} max limit to request ratio per {kind} is {ratio}"
        yield from _ratio_trouble(start, ratio, asked.get(name), most.get(name))


def _ratio_trouble(
    start: str, ratio: Quantity, asked: Quantity | None, most: Quantity | None
) -> Iterator[str]:
    if asked is None or not asked.nanos:
        yield f"{start}, but no request is specified or request is 0"
    elif most is None or not most.nanos:
        yield f"{start}, but no limit is specified or limit is 0"
    elif most.nanos * quantity.NANO > ratio.nanos * asked.nanos:
        yield f"{start}, but provided ratio is {most.nanos / asked.nanos:f}"

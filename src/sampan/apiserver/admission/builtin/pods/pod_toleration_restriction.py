"""PodTolerationRestriction: default and allowed tolerations of a namespace's pods.

Job: merge in the default tolerations of the namespace, or the cluster's; refuse what is not
    allowed.
"""

from collections.abc import Sequence

import orjson

from sampan.api.objects import Obj, annotations_of
from sampan.api.resources import NAMESPACES
from sampan.api.rules.qos import qos_class
from sampan.apiserver.admission.chain import CREATE, Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_START = "scheduler.alpha.kubernetes.io/"
_FIELDS = ("key", "operator", "value", "effect")
_PRESSED = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}


def plugin(initializer: PluginInitializer) -> Steps:
    find, settings = initializer.registry.find, initializer.settings.tolerations

    def of(attributes: Attributes, name: str, otherwise: Sequence[Obj]) -> Sequence[Obj]:
        notes = annotations_of(find(NAMESPACES, "", attributes.namespace) or {})
        text = notes.get(_START + name)
        if text is None:
            return otherwise
        try:
            found = orjson.loads(text or "[]")
        except ValueError as error:
            raise rejection(attributes, f"the namespace's {name} cannot be read") from error
        return found if isinstance(found, list) else []

    def mutate(attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None:
            return
        spec = pod.setdefault("spec", {})
        wanted = list(spec.get("tolerations") or ())
        if attributes.operation == CREATE:
            defaults = of(attributes, "defaultTolerations", settings.defaults)
            wanted = _merge(defaults, wanted)
        if qos_class(pod) != "BestEffort":
            wanted = _merge(wanted, [_PRESSED])
        if wanted:
            spec["tolerations"] = wanted
        validate(attributes)

    def validate(attributes: Attributes) -> None:
        allowed = of(attributes, "tolerationsWhitelist", settings.allowed)
        asked = ((attributes.obj or {}).get("spec") or {}).get("tolerations") or ()
        if allowed and not all(any(_contains(item, two) for item in allowed) for two in asked):
            why = (
                "pod tolerations (possibly merged with namespace default tolerations) conflict "
                "with its namespace whitelist"
            )
            raise rejection(attributes, why)

    return Steps(mutate, validate)


def _merge(first: Sequence[Obj], second: Sequence[Obj]) -> list[Obj]:
    """As upstream: what another one contains is left out."""
    every = [*first, *second]
    return [
        item
        for index, item in enumerate(every)
        if not any(
            _contains(other, item) and (not _contains(item, other) or place < index)
            for place, other in enumerate(every)
            if place != index
        )
    ]


def _contains(wide: Obj, narrow: Obj) -> bool:
    """Whatever `narrow` tolerates, `wide` does as well."""
    for field in ("key", "effect"):
        if (wide.get(field) or "") not in ("", narrow.get(field) or ""):
            return False
    if not _lasts_as_long(wide, narrow):
        return False
    if wide.get("operator") == "Exists":
        return True
    if not wide.get("key"):
        return False  # an empty key means every one only where it asks for existence
    alike = (wide.get("operator") or "Equal") == (narrow.get("operator") or "Equal")
    return alike and (wide.get("value") or "") == (narrow.get("value") or "")


def _lasts_as_long(wide: Obj, narrow: Obj) -> bool:
    seconds, other = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if seconds is None:
        return True
    return bool(wide.get("effect") == "NoExecute" and other is not None and other <= seconds)

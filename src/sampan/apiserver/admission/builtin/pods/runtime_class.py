"""RuntimeClass: a pod takes its class's overhead and scheduling rules.

Job: copy them in; refuse a class that is missing and an overhead that is not its.
"""

from sampan.api.errors import ApiError, Failure, forbidden
from sampan.api.objects import Obj, copy_of
from sampan.api.resources import RUNTIME_CLASSES
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(initializer: PluginInitializer) -> Steps:
    find = initializer.registry.find

    def class_of(attributes: Attributes) -> Obj | None:
        name = ((attributes.obj or {}).get("spec") or {}).get("runtimeClassName")
        if name is None:
            return None
        if not name:
            raise Failure("resource name may not be empty")
        found = find(RUNTIME_CLASSES, "", name)
        if found is None:
            raise _refusal(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        return found

    def mutate(attributes: Attributes) -> None:
        found = class_of(attributes)
        if found is None or attributes.obj is None:
            return
        spec = attributes.obj["spec"]
        _set_overhead(attributes, spec, (found.get("overhead") or {}).get("podFixed"))
        _merge_scheduling(attributes, spec, found.get("scheduling") or {})

    def validate(attributes: Attributes) -> None:
        spec = (attributes.obj or {}).get("spec") or {}
        overhead = spec.get("overhead")
        if overhead is None and spec.get("runtimeClassName") is None:
            return
        found = class_of(attributes)
        wanted = ((found or {}).get("overhead") or {}).get("podFixed")
        if overhead is not None and found is None:
            why = (
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
            raise _refusal(attributes, why)
        if overhead != wanted and (overhead or wanted):
            raise _refusal(attributes, _MISMATCH)

    return Steps(mutate, validate)


_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def _refusal(attributes: Attributes, why: str) -> ApiError:
    return forbidden("pods", "", attributes.called, why)


def _set_overhead(attributes: Attributes, spec: Obj, wanted: Obj | None) -> None:
    if wanted is None:
        return
    if spec.get("overhead") and spec["overhead"] != wanted:
        raise _refusal(attributes, _MISMATCH)
    spec["overhead"] = copy_of(wanted)


def _merge_scheduling(attributes: Attributes, spec: Obj, scheduling: Obj) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.setdefault(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise _refusal(attributes, why)
    if selector:
        spec["nodeSelector"] = selector
    more = [
        copy_of(toleration)
        for toleration in scheduling.get("tolerations") or ()
        if toleration not in (spec.get("tolerations") or ())
    ]
    if more:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *more]

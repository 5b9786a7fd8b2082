"""Priority: a pod's priority and preemption policy come from its priority class.

Job: compute them at creation; refuse unknown classes, numbers given by hand and a second default.
"""

from sampan.api.errors import ApiError, forbidden
from sampan.api.objects import Obj, meta_of, name_of
from sampan.api.resources import PODS, PRIORITY_CLASSES
from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes, Find, FindAll, Plugin

DEFAULT_POLICY = "PreemptLowerPriority"


def plugin(find: Find, find_all: FindAll) -> Plugin:
    def mutate(attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_main(PODS):
            return
        spec = pod.setdefault("spec", {})
        if attributes.operation == UPDATE:
            _keep(spec, (attributes.old or {}).get("spec") or {})
            return
        _set_from_class(attributes, spec, _class_of(attributes, spec, find, find_all))

    def validate(attributes: Attributes) -> None:
        new = attributes.obj
        if new is None or not attributes.is_main(PRIORITY_CLASSES) or not new.get("globalDefault"):
            return
        other = _default_class(find_all(PRIORITY_CLASSES))
        if other is not None and name_of(other) != name_of(new):
            raise forbidden(
                "priorityclasses", "scheduling.k8s.io", name_of(new),
                f"PriorityClass {name_of(other)} is already marked as default. "
                "Only one default can exist",
            )  # fmt: skip

    return Plugin("Priority", frozenset({CREATE, UPDATE}), mutate=mutate, validate=validate)


def _keep(spec: Obj, old: Obj) -> None:
    """An update that leaves them out does not change them."""
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and old.get(field) is not None:
            spec[field] = old[field]


def _class_of(attributes: Attributes, spec: Obj, find: Find, find_all: FindAll) -> Obj | None:
    name = spec.get("priorityClassName")
    if not name:
        default = _default_class(find_all(PRIORITY_CLASSES))
        if default is not None:
            spec["priorityClassName"] = name_of(default)
        return default
    found = find(PRIORITY_CLASSES, "", name)
    if found is None:
        raise _refused(attributes, f"no PriorityClass with name {name} was found")
    return found


def _default_class(classes: list[Obj]) -> Obj | None:
    defaults = [one for one in classes if one.get("globalDefault")]
    # Several can only come from a race; as upstream, the lowest counts.
    return min(defaults, key=lambda one: int(one.get("value") or 0), default=None)


def _set_from_class(attributes: Attributes, spec: Obj, chosen: Obj | None) -> None:
    priority = int((chosen or {}).get("value") or 0)
    policy = (chosen or {}).get("preemptionPolicy") or DEFAULT_POLICY
    if spec.get("priority") is not None and spec["priority"] != priority:
        raise _refused(
            attributes,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy") and spec["preemptionPolicy"] != policy and chosen is not None:
        raise _refused(
            attributes,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the given "
            "PriorityClass name",
        )
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", policy)


def _refused(attributes: Attributes, why: str) -> ApiError:
    return forbidden(
        "pods", "", attributes.name or meta_of(attributes.obj or {}).get("generateName", ""), why
    )

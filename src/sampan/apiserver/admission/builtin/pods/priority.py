"""Priority: a pod's priority and preemption policy come from its priority class.

Job: compute them at creation; refuse unknown classes, numbers given by hand and a second default.
"""

from sampan.api.errors import ApiError, forbidden
from sampan.api.objects import Obj, name_of
from sampan.api.resources import PODS, PRIORITY_CLASSES
from sampan.apiserver.admission.chain import UPDATE, Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.registry.generic import Registry

DEFAULT_POLICY = "PreemptLowerPriority"


class _Classes:
    """The priority classes; which one is the default is worked out when they have changed."""

    def __init__(self, registry: Registry) -> None:
        self._kind = registry.kind(PRIORITY_CLASSES)
        self._seen = -1
        self._default: Obj | None = None

    def named(self, name: str) -> Obj | None:
        item = self._kind.items.get(name)
        return None if item is None else item.obj

    def default(self) -> Obj | None:
        if self._seen != self._kind.changed_revision:
            self._seen = self._kind.changed_revision
            defaults = [
                item.obj for item in self._kind.items.values() if item.obj.get("globalDefault")
            ]
            # Several can only come from a race; as upstream, the lowest counts.
            self._default = min(
                defaults, key=lambda item: int(item.get("value") or 0), default=None
            )
        return self._default


def plugin(initializer: PluginInitializer) -> Steps:
    classes = _Classes(initializer.registry)

    def mutate(attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or attributes.resource is not PODS:
            return
        spec = pod.setdefault("spec", {})
        if attributes.operation == UPDATE:
            _keep(spec, (attributes.old or {}).get("spec") or {})
            return
        _set_from_class(attributes, spec, _class_of(attributes, spec, classes))

    def validate(attributes: Attributes) -> None:
        new = attributes.obj
        if new is None or not new.get("globalDefault"):
            return
        other = classes.default()
        if other is not None and name_of(other) != name_of(new):
            raise forbidden(
                "priorityclasses", "scheduling.k8s.io", name_of(new),
                f"PriorityClass {name_of(other)} is already marked as default. "
                "Only one default can exist",
            )  # fmt: skip

    return Steps(mutate, validate)


def _keep(spec: Obj, old: Obj) -> None:
    """An update that leaves them out does not change them."""
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and old.get(field) is not None:
            spec[field] = old[field]


def _class_of(attributes: Attributes, spec: Obj, classes: _Classes) -> Obj | None:
    name = spec.get("priorityClassName")
    if not name:
        default = classes.default()
        if default is not None:
            spec["priorityClassName"] = name_of(default)
        return default
    found = classes.named(name)
    if found is None:
        raise _refusal(attributes, f"no PriorityClass with name {name} was found")
    return found


def _set_from_class(attributes: Attributes, spec: Obj, chosen: Obj | None) -> None:
    priority, policy = 0, DEFAULT_POLICY
    if chosen is not None:
        priority = int(chosen.get("value") or 0)
        policy = chosen.get("preemptionPolicy") or DEFAULT_POLICY
    if spec.get("priority") is not None and spec["priority"] != priority:
        raise _refusal(
            attributes,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy") not in (None, policy):
        raise _refusal(
            attributes,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the given "
            "PriorityClass name",
        )
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", policy)


def _refusal(attributes: Attributes, why: str) -> ApiError:
    return forbidden("pods", "", attributes.called, why)

"""What is done in a life: the steps of a scenario, as values.

Job: name each step; say which path a kind has. Whoever does them is live.py.
A name may be `label=value#2`: of the objects with that label the third, by name; `*#2`: of all of
the kind; `other/name` is in another namespace. Texts may hold words that live.py fills in: `{ns}`
the life's namespace, `{life}` its name, `{in N minutes at ZONE}` the schedule of that minute of the
day, `{csr NAME …}` a certificate request, `{uid KIND NAME}` the uid of an object.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sampan.api.objects import Obj
from sampan.api.resources import RESOURCES, Resource
from sampan.client.rest import path_of
from sampan.core.fast_dataclass import dataclass
from tests.support.workload_lives.transport import MERGE, STRATEGIC


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class UntilSecond:
    """Until the clock's minute has come so far: schedules are of minutes."""

    second: int


@dataclass(frozen=True, slots=True)
class Create:
    objects: Sequence[Obj]
    user: str = ""  # on whose behalf; empty: the administrator
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A patch; `kind` is a plural, with a subresource behind a slash."""

    kind: str
    name: str
    patch: Any
    content_type: str = MERGE


@dataclass(frozen=True, slots=True)
class Remove:
    kind: str
    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Post:
    """To a subresource: evictions, bindings, tokens; `{name}` in it is the object's."""

    kind: str
    name: str
    body: Obj


@dataclass(frozen=True, slots=True)
class NodeStep:
    """`what`: silence, return, add or remove."""

    what: str
    node: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measure:
    """What the metrics APIs say from now on of the life's namespace (played_metrics.py)."""

    values: Mapping[str, Any]


Step = Wait | UntilSecond | Create | Change | Remove | Post | NodeStep | Measure


@dataclass(frozen=True, slots=True)
class Life:
    steps: Sequence[Step]
    alone: bool = False  # it changes what others share: nodes, cluster-scoped objects
    shows: tuple[str, ...] = ()  # cluster-scoped kinds that are part of what is seen at the end
    places: bool = False  # how many pods each zone has is part of it
    also: tuple[str, ...] = ()  # further namespaces that are seen: `{ns}` and this


def life(
    *steps: Step,
    alone: bool = False,
    shows: tuple[str, ...] = (),
    places: bool = False,
    also: tuple[str, ...] = (),
) -> Life:
    touches_nodes = any(
        isinstance(step, NodeStep) or (isinstance(step, Change) and step.kind.startswith("nodes"))
        for step in steps
    )
    return Life(steps, alone or touches_nodes, shows, places, also)


def wait(seconds: float) -> Wait:
    return Wait(seconds)


def until_second(second: int) -> UntilSecond:
    return UntilSecond(second)


def create(*objects: Obj, user: str = "", groups: tuple[str, ...] = ()) -> Create:
    return Create(objects, user, groups)


def measure(**values: Any) -> Measure:
    return Measure(values)


def change(kind: str, name: str, **patch: Any) -> Change:
    return Change(kind, name, patch)


def change_spec(kind: str, name: str, **spec: Any) -> Change:
    return Change(kind, name, {"spec": spec})


def change_meta(kind: str, name: str, **meta: Any) -> Change:
    return Change(kind, name, {"metadata": meta})


def change_status(kind: str, name: str, **status: Any) -> Change:
    return Change(f"{kind}/status", name, {"status": status}, STRATEGIC)


def remove(kind: str, name: str, **options: Any) -> Remove:
    return Remove(kind, name, options)


def evict(name: str) -> Post:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "{name}"}}
    return Post("pods/eviction", name, body)


def taint(node: str, *taints: Obj) -> Change:
    return Change("nodes", node, {"spec": {"taints": list(taints) or None}})


def label(node: str, **labels: str | None) -> Change:
    return Change("nodes", node, {"metadata": {"labels": labels}})


def silence(node: str) -> NodeStep:
    return NodeStep("silence", node, {})


def come_back(node: str) -> NodeStep:
    return NodeStep("return", node, {})


def add_node(node: str, **labels: str) -> NodeStep:
    return NodeStep("add", node, labels)


def remove_node(node: str) -> NodeStep:
    return NodeStep("remove", node, {})


def resource_named(plural: str) -> Resource:
    """`plural`, or `plural@group/version` for what is not built in."""
    name, _, api_version = plural.partition("@")
    if api_version:
        group, _, version = api_version.rpartition("/")
        return Resource(group, version, "", name)
    return next(resource for resource in RESOURCES if resource.plural == name)


def resource_of(obj: Obj) -> Resource:
    for resource in RESOURCES:
        if resource.api_version == obj["apiVersion"] and resource.kind == obj["kind"]:
            return resource
    group, _, version = obj["apiVersion"].rpartition("/")
    return Resource(group, version, obj["kind"], f"{obj['kind'].lower()}s")


def path(kind: str, namespace: str, name: str = "") -> str:
    plural, _, subresource = kind.partition("/") if "@" not in kind else (kind, "", "")
    resource = resource_named(plural)
    return path_of(resource, namespace if resource.namespaced else "", name, subresource)

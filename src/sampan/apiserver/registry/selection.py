"""Label and field selectors of a list or watch, compiled into one predicate.

Job: parse, refuse fields that the kind does not offer, find what narrows a watch. Pure.
"""

from collections.abc import Callable
from functools import lru_cache

from sampan.api.calls import Item, Options
from sampan.api.errors import BadRequest
from sampan.api.objects import Obj, labels_of
from sampan.api.resources import Resource
from sampan.api.rules import selectors
from sampan.apiserver.registry.strategy import Getter, Strategy, path_getter
from sampan.apiserver.watch.cache_watcher import Matches, Trigger
from sampan.core.fast_dataclass import dataclass

Test = Callable[[Obj], bool]
MOST_REMEMBERED = 512  # characters of a selector
# Kinds whose conversion says which one it is.
_NAMING = {
    "Job": 'field label "{field}" not supported for Job',
    "ResourceSlice": "field label not supported for {resource.api_version}, Kind=ResourceSlice: "
    "{field}",
}
_NAME = path_getter("metadata", "name")
_NAMESPACE = path_getter("metadata", "namespace")


@dataclass(frozen=True, slots=True)
class Selection:
    matches: Matches | None = None  # None: everything
    # Of a custom kind: what is asked of its own fields, as the version that is spoken shows them.
    shown: Test | None = None
    trigger: Trigger | None = None
    trigger_getter: Getter = _NAME


EVERYTHING = Selection()


def check_selectors(options: Options) -> None:
    """Whether they can be read; raises BadRequest."""
    if options.label_selector:
        _label_test(options.label_selector)
    _field_requirements(options.field_selector)


def selection_of(
    resource: Resource,
    strategy: Strategy,
    name: str,
    options: Options,
    check: Callable[[], None] = lambda: None,
) -> Selection:
    """Raises BadRequest, Invalid. `name` is that of a watch on one object; `check` looks at the
    other options, as upstream between reading the selectors and asking which fields there are."""
    if not (options.label_selector or options.field_selector or name):
        return EVERYTHING
    labels = _label_test(options.label_selector) if options.label_selector else None
    requirements = _field_requirements(options.field_selector)
    check()
    if name:
        requirements.append(("metadata.name", True, name))
    trigger, getter = _trigger(resource, strategy, requirements)
    by_field: dict[str, list[tuple[bool, str]]] = {}
    for field, equal, value in requirements:
        if field or value or not equal:  # as upstream: nothing is asked of nothing
            by_field.setdefault(field, []).append((equal, value))
    tests: list[Test] = []
    of_shown: list[Test] = []
    for field, asked in by_field.items():
        is_own = resource.custom is not None and field in strategy.fields
        test = _field_test(_getter(resource, strategy, field), asked)
        (of_shown if is_own else tests).append(test)
    if labels is not None:
        tests.append(labels)
    shown = None if not of_shown else lambda obj: all(test(obj) for test in of_shown)
    return Selection(_all(tests) if tests else None, shown, trigger, getter)


def _trigger(
    resource: Resource, strategy: Strategy, requirements: list[tuple[str, bool, str]]
) -> tuple[Trigger | None, Getter]:
    """The first that narrows a watch."""
    for field, equal, value in requirements:
        if equal and field in strategy.trigger_fields:
            return (field, value), _getter(resource, strategy, field)
    return None, _NAME


def _all(tests: list[Test]) -> Matches:
    if len(tests) == 1:
        only = tests[0]
        return lambda item: only(item.obj)

    def matches(item: Item) -> bool:
        return all(test(item.obj) for test in tests)

    return matches


def _label_test(text: str) -> Test:
    try:
        selector = selectors.parse_label_selector(text)
    except selectors.SelectorError as error:
        raise BadRequest(str(error)) from error
    return lambda obj: selector.matches(labels_of(obj))


def _field_requirements(text: str) -> list[tuple[str, bool, str]]:
    """(field, equal or not, value)."""
    try:
        return (
            [(item.field, item.equal, item.value) for item in selectors.parse_field_selector(text)]
            if text
            else []
        )
    except selectors.SelectorError as error:
        raise BadRequest(str(error)) from error


def _field_test(get: Getter, asked: list[tuple[bool, str]]) -> Test:
    """All that is asked of one field: a request may bring thousands."""
    wanted = {value for equal, value in asked if equal}
    refused = {value for equal, value in asked if not equal}
    if len(wanted) > 1 or wanted & refused:
        return lambda obj: False
    if wanted:
        (value,) = wanted
        return lambda obj: get(obj) == value
    return lambda obj: get(obj) not in refused


def _getter(resource: Resource, strategy: Strategy, field: str) -> Getter:
    if field == "metadata.name":
        return _NAME
    if field == "metadata.namespace" and (resource.namespaced or not strategy.fields):
        return _NAMESPACE
    get = strategy.fields.get(field)
    if get is not None:
        return get
    raise BadRequest(_unknown_field(resource, field, own=bool(strategy.fields)))


def _unknown_field(resource: Resource, field: str, own: bool) -> str:
    """In the words of whoever converts the kind's fields upstream."""
    if resource.kind in _NAMING:
        return _NAMING[resource.kind].format(field=field, resource=resource)
    if own:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def name_selected(field_selector: str) -> str:
    """As upstream's RequestInfo: a selector for one name asks for that object. [A2]"""
    if len(field_selector) > MOST_REMEMBERED:
        return _name_selected.__wrapped__(field_selector)
    return _name_selected(field_selector)


@lru_cache(maxsize=1024)
def _name_selected(field_selector: str) -> str:
    try:
        requirements = selectors.parse_field_selector(field_selector)
    except selectors.SelectorError:
        return ""  # refused later, with its reason
    return next((r.value for r in requirements if r.field == "metadata.name" and r.equal), "")

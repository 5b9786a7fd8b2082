"""Selectors and labels that find each other without looking at everything there is.

Job: indices of objects by their labels, and of those that select by one label that they ask for;
    from a selector to what it selects, and from labels to who may select them.
Invariant: a selector that asks for a label's value finds what the rarest such label has, no more;
    one that asks for none is compared with its whole namespace.
Invariant: what has thousands of labels is in one more place, not in thousands: whoever asks in its
    namespace is compared with it.
"""

import sys
from collections.abc import Iterable, Mapping

from sampan.api.objects import Obj, controller_of, labels_of, namespace_of
from sampan.api.rules import aspects
from sampan.api.rules.aspects import looks_at
from sampan.api.rules.selectors import LabelSelector, from_stored, match_labels
from sampan.client.by_identity import OF_ANY_SIZE, by_identity, by_identity_and
from sampan.client.indexer import Cache

LABELS, ORPHANS, SELECTOR = "labels", "orphans", "selector"  # names of the indices
MOST_LABELS = 500  # that one object is found by


@looks_at(aspects.LABELS)
def by_labels(obj: Obj) -> Iterable[str]:
    """Its namespace, and each of its labels in there."""
    return _pairs(labels_of(obj), namespace_of(obj))


@by_identity_and(4096)
def _pairs(labels: dict[str, str], namespace: str) -> tuple[str, ...]:
    """Of labels that pods of a template share, and those that a change has left as they were: the
    same few texts for thousands of objects."""
    if len(labels) > MOST_LABELS:
        return f"{namespace}/", _of_many_labels(namespace)
    pairs = [sys.intern(_value(namespace, *label)) for label in labels.items()]
    return sys.intern(f"{namespace}/"), *pairs


@looks_at(aspects.LABELS | aspects.OWNERS)
def by_labels_of_orphan(obj: Obj) -> Iterable[str]:
    """Likewise, of what has no controller."""
    return () if controller_of(obj) is not None else by_labels(obj)


@looks_at(aspects.SPEC)
def by_selector(obj: Obj) -> Iterable[str]:
    """One label that its selector asks for; its namespace, where there is no such label."""
    selector = (obj.get("spec") or {}).get("selector")
    if selector is None:
        return ()
    labels = selector.get("matchLabels") if _is_structured(selector) else selector
    return (_value(namespace_of(obj), *min(labels.items())) if labels else f"{namespace_of(obj)}/",)


@by_identity(8, OF_ANY_SIZE)
def parsed(selector: Obj | None) -> LabelSelector:
    """A LabelSelector of an object from a cache. A plan asks for it more than once, and it may have
    15,000 requirements."""
    return from_stored(selector)


@by_identity(8, OF_ANY_SIZE)
def parsed_labels(selector: Mapping[str, str] | None) -> LabelSelector:
    """Likewise, the bare map of a ReplicationController."""
    return match_labels(selector)


def selected(cache: Cache, index: str, namespace: str, selector: LabelSelector) -> list[Obj]:
    """What of a namespace has matching labels, by the index of labels."""
    asked = [
        _value(namespace, requirement.key, requirement.values[0])
        for requirement in selector.requirements
        if requirement.operator in ("=", "==")
    ]
    rarest = min(asked, key=lambda value: cache.count(index, value), default=f"{namespace}/")
    those = _found(cache, index, namespace, rarest)
    return [obj for obj in those if selector.matches(labels_of(obj))]


def having(cache: Cache, index: str, namespace: str, labels: Mapping[str, str]) -> list[Obj]:
    """What of a namespace has all of the labels, of which there may be thousands."""
    rarest, fewest = f"{namespace}/", cache.count(index, f"{namespace}/")
    for label in labels.items():
        if not fewest:
            break
        value = _value(namespace, *label)
        if (count := cache.count(index, value)) < fewest:
            rarest, fewest = value, count
    those = _found(cache, index, namespace, rarest)
    return [obj for obj in those if labels.items() <= labels_of(obj).items()]


def _found(cache: Cache, index: str, namespace: str, value: str) -> list[Obj]:
    """What has the value in an index of labels, or so many that nobody has looked."""
    found = cache.by(index, value)
    if value != f"{namespace}/":
        found += cache.by(index, _of_many_labels(namespace))
    return found


def may_select(cache: Cache, namespace: str, labels: Mapping[str, str]) -> list[Obj]:
    """Who of a namespace selects by one of the labels, or by none at all: these may match."""
    values = cache.index_values(SELECTOR)
    if not values:
        return []  # of most kinds there is none at all
    found = cache.by(SELECTOR, f"{namespace}/")
    if len(labels) <= len(values):
        asked = [_value(namespace, *label) for label in labels.items()]
    else:
        # Of thousands of labels: which of them somebody selects by.
        here = f"{namespace}/"
        asked = [value for value in values if value.startswith(here) and _is_among(value, labels)]
    for value in asked:
        found += cache.by(SELECTOR, value)
    return found


def _is_among(value: str, labels: Mapping[str, str]) -> bool:
    key, equals, wanted = value.partition("/")[2].partition("=")
    return bool(equals) and labels.get(key) == wanted


def _of_many_labels(namespace: str) -> str:
    return f"{namespace}//"  # no label's: those have a sign of equality


def _value(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


def _is_structured(selector: Obj) -> bool:
    """A LabelSelector, not the bare map of Services and ReplicationControllers."""
    return not selector or any(not isinstance(value, str) for value in selector.values())

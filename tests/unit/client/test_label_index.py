from hypothesis import given
from hypothesis import strategies as st

from sampan.api.objects import labels_of, name_of, namespace_of
from sampan.api.rules.selectors import from_object, match_labels
from sampan.client.indexer import Cache
from sampan.client.label_index import (
    LABELS,
    MOST_LABELS,
    ORPHANS,
    SELECTOR,
    by_labels,
    by_labels_of_orphan,
    by_selector,
    having,
    may_select,
    selected,
)

NAMESPACES = st.sampled_from(["a", "b"])
LABEL_SETS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
EXPRESSION = {"key": "app", "operator": "In", "values": ["x", "y"]}
SELECTORS = st.one_of(
    st.none(),
    st.builds(lambda labels: {"matchLabels": labels}, LABEL_SETS),
    st.builds(lambda labels: {"matchLabels": labels, "matchExpressions": [EXPRESSION]}, LABEL_SETS),
    st.just({}),
)


def obj(name, namespace, labels=None, selector=None, owner=None):
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    if owner:
        meta["ownerReferences"] = [{"uid": owner, "controller": True}]
    return {"metadata": meta, "spec": {"selector": selector}}


MANY = {f"k{number}": "v" for number in range(MOST_LABELS)}


def test_what_has_thousands_of_labels_is_found_by_each_of_them_and_has_few_entries():
    cache = Cache({LABELS: by_labels, ORPHANS: by_labels_of_orphan})
    few, many = obj("few", "a", {"app": "x"}), obj("many", "a", {"app": "x", "b": "c/d", **MANY})
    elsewhere = obj("elsewhere", "b", {"app": "x", **MANY})
    for each in (few, many, elsewhere):
        cache.put(each)
    assert len(cache.index_values(LABELS)) == 5  # of both namespaces, their many, and app=x
    for index in (LABELS, ORPHANS):
        for labels, wanted in (
            ({"app": "x"}, [few, many]),
            ({"b": "c/d"}, [many]),
            ({"k7": "v", "app": "x"}, [many]),
            (MANY, [many]),
            ({"k7": "w"}, []),
            ({}, [few, many]),
        ):
            assert having(cache, index, "a", labels) == wanted
            assert selected(cache, index, "a", match_labels(labels)) == wanted
    cache.remove(many)
    assert having(cache, LABELS, "a", {"k7": "v"}) == []


@given(st.lists(st.tuples(NAMESPACES, SELECTORS)), NAMESPACES, LABEL_SETS)
def test_thousands_of_labels_are_selected_by_the_same(placed, namespace, labels):
    cache = Cache({SELECTOR: by_selector})
    for at, (where, how) in enumerate(placed):
        cache.put(obj(f"o{at}", where, None, how))
    one_by_one = may_select(cache, namespace, labels)
    together = may_select(cache, namespace, {**MANY, **labels})
    assert sorted(map(name_of, together)) == sorted(map(name_of, one_by_one))


@given(st.lists(st.tuples(NAMESPACES, LABEL_SETS)), NAMESPACES, SELECTORS)
def test_a_selector_finds_what_looking_at_everything_finds(placed, namespace, selector):
    cache = Cache({LABELS: by_labels})
    pods = [obj(f"p{at}", *where) for at, where in enumerate(placed)]
    for pod in pods:
        cache.put(pod)
    compiled = from_object(selector)
    wanted = [
        pod for pod in pods if namespace_of(pod) == namespace and compiled.matches(labels_of(pod))
    ]
    assert selected(cache, LABELS, namespace, compiled) == wanted


@given(st.lists(st.tuples(NAMESPACES, SELECTORS)), NAMESPACES, LABEL_SETS)
def test_nobody_who_selects_the_labels_is_missed(placed, namespace, labels):
    cache = Cache({SELECTOR: by_selector})
    owners = [obj(f"o{at}", where, None, how) for at, (where, how) in enumerate(placed)]
    for owner in owners:
        cache.put(owner)
    found = may_select(cache, namespace, labels)
    names = [owner["metadata"]["name"] for owner in found]
    assert len(set(names)) == len(names)
    for owner in owners:
        if namespace_of(owner) == namespace and from_object(owner["spec"]["selector"]).matches(
            labels
        ):
            assert owner in found


@given(st.lists(st.tuples(NAMESPACES, LABEL_SETS)), NAMESPACES, LABEL_SETS)
def test_what_has_all_labels_is_what_their_selector_finds(placed, namespace, labels):
    cache = Cache({LABELS: by_labels})
    for at, where in enumerate(placed):
        cache.put(obj(f"p{at}", *where))
    wanted = selected(cache, LABELS, namespace, match_labels(labels))
    assert having(cache, LABELS, namespace, labels) == wanted


def test_the_rarest_label_decides_how_many_are_looked_at():
    cache, seen = Cache({LABELS: by_labels}), []
    for number in range(50):
        cache.put(obj(f"p{number}", "a", {"all": "yes", "number": str(number)}))

    class Counted(Cache):
        def by(self, index, value):
            found = super().by(index, value)
            seen.append(len(found))
            return found

    cache.__class__ = Counted
    selector = match_labels({"all": "yes", "number": "7"})
    assert [pod["metadata"]["name"] for pod in selected(cache, LABELS, "a", selector)] == ["p7"]
    assert sum(seen) == 1


def test_the_bare_map_of_a_service_is_a_selector_too():
    cache = Cache({SELECTOR: by_selector})
    cache.put(obj("web", "a", None, {"app": "x"}))
    cache.put(obj("other", "a", None, {"app": "y"}))
    assert [item["metadata"]["name"] for item in may_select(cache, "a", {"app": "x"})] == ["web"]


def test_orphans_are_those_without_a_controller():
    cache = Cache({ORPHANS: by_labels_of_orphan})
    cache.put(obj("lonely", "a", {"app": "x"}))
    cache.put(obj("owned", "a", {"app": "x"}, owner="u"))
    found = selected(cache, ORPHANS, "a", match_labels({"app": "x"}))
    assert [item["metadata"]["name"] for item in found] == ["lonely"]

"""Values compared, merged and taken apart, on real kinds and on made-up ones. [A7]"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import difference, in_canonical_order, paths, union
from sampan.api.apply.field_types import LEAF, KeyedList, Map, Struct, compare, less, set_of, whole
from sampan.api.schema.published import Schema

POD = FieldSchema(Schema.load()).root("v1", "Pod")


def world():
    """A struct with one field of each way of being owned; one of its fields is always there."""
    inner = Struct(frozenset())
    inner.add("x", LEAF)
    inner.add("labels", Map(LEAF))
    item = Struct(frozenset())
    item.add("name", LEAF)
    item.add("value", LEAF)
    item.add("inner", inner)
    root = Struct(frozenset({"fixed"}))
    root.add("scalar", LEAF)
    root.add("labels", Map(LEAF))
    root.add("fixed", inner)
    root.add("optional", inner)
    root.add("structs", Map(inner))
    root.add("items", KeyedList(item, ("name",), {}, frozenset({"name"})))
    root.add("values", KeyedList(LEAF, (), {}, frozenset()))
    root.add("atoms", LEAF)
    return root


WORLD = world()
SCALARS = st.sampled_from(["1", "2", "3"])
KEYS = st.sampled_from("abc")
LABELS = st.dictionaries(KEYS, SCALARS, max_size=3)


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


INNER = some(x=SCALARS, labels=LABELS)
NAMED = st.lists(KEYS, unique=True, max_size=3).flatmap(
    lambda names: st.tuples(
        *(
            st.fixed_dictionaries(
                {"name": st.just(name)}, optional={"value": SCALARS, "inner": INNER}
            )
            for name in names
        )
    ).map(list)
)
OBJECTS = some(
    scalar=SCALARS,
    labels=LABELS,
    fixed=INNER,
    optional=INNER,
    structs=st.dictionaries(KEYS, INNER, max_size=2),
    items=NAMED,
    values=st.lists(KEYS, unique=True, max_size=3),
    atoms=st.lists(SCALARS, max_size=2),
)


def everything(obj):
    return compare(WORLD, {}, obj)[0]


@given(OBJECTS)
def test_a_value_does_not_differ_from_itself(obj):
    assert compare(WORLD, obj, obj) == ({}, {})


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_one_way_removes_the_other_way_adds(one, two):
    there, back = compare(WORLD, one, two), compare(WORLD, two, one)
    assert set(paths(there[1])) <= set(paths(back[0]))


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_differs_is_told_in_canonical_order(one, two):
    for found in compare(WORLD, one, two):
        assert repr(found) == repr(in_canonical_order(found))


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_is_not_changed_is_the_same_in_both(old, new):
    changed, removed = compare(WORLD, old, new)
    same = set(paths(difference(everything(new), changed)))
    assert same <= set(paths(everything(old)))
    assert not set(paths(removed)) & set(paths(everything(new)))


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_merging_keeps_the_live_object_and_takes_all_of_the_configuration(live, config):
    before = repr((live, config))
    merged = WORLD.merged(live, config)
    assert repr((live, config)) == before
    assert compare(WORLD, merged, WORLD.merged(merged, config)) == ({}, {})
    both = union(set_of(WORLD, live), set_of(WORLD, config))
    assert set(paths(both)) <= set(paths(WORLD.named(both)))
    assert set_of(WORLD, merged) == both or {} in _containers(live, config)


def _containers(*objs):
    """All maps inside: an empty one is spoken for as long as nobody fills it."""
    found = []
    waiting = list(objs)
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.append(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


@pytest.mark.slow
@given(OBJECTS, OBJECTS)
def test_what_is_taken_away_is_not_there_any_more(obj, part):
    going = WORLD.named(set_of(WORLD, part))
    left = whole(less(WORLD, obj, going))
    assert not set(paths(set_of(WORLD, left))) & set(paths(going))
    assert less(WORLD, obj, {}) == {key: one for key, one in obj.items()}  # noqa: C416


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        ("abc", "b", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("ab", "ba", "ba"),
        ("bax", "abc", "axbc"),
        ("abx", "bac", "bxac"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("xay", "bac", "xbayc"),
    ],
)
def test_the_order_of_merged_lists(live, config, merged):
    """The configuration's order wins among its own; the others stay where they were."""
    live, config = ({"items": [{"name": one} for one in names]} for names in (live, config))
    found = WORLD.merged(live, config)["items"]
    assert "".join(one["name"] for one in found) == merged


def pod(**container):
    return {"spec": {"containers": [{"name": "main", **container}]}}


def test_a_new_pod_is_owned_as_upstream_shows_it():
    """Containers are always there in Go, volumes are not: only the latter are `.` themselves."""
    new = pod(image="a", resources={}, ports=[{"containerPort": 80, "protocol": "TCP"}])
    new["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    assert compare(POD, {}, new)[0] == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"main"}': {
                    ".": {},
                    "f:name": {},
                    "f:image": {},
                    "f:resources": {},
                    "f:ports": {
                        ".": {},
                        'k:{"containerPort":80,"protocol":"TCP"}': {
                            ".": {}, "f:containerPort": {}, "f:protocol": {},
                        },
                    },
                }
            },
            "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:name": {}, "f:emptyDir": {}}},
        }
    }  # fmt: skip


def test_a_key_that_may_be_left_out_has_its_default():
    one = pod(ports=[{"containerPort": 80}])
    two = pod(ports=[{"containerPort": 80, "protocol": "TCP"}])
    merged = POD.merged(two, one)
    assert merged["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_what_cannot_be_merged_is_named():
    twice = pod(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}])
    assert list(POD.problems(twice, "")) == [
        '.spec.containers[name="main"].ports: duplicate entries for key '
        '[containerPort=1,protocol="TCP"]'
    ]
    nameless = {"spec": {"containers": [{"image": "a"}]}}
    assert list(POD.problems(nameless, "")) == [
        ".spec.containers: element 0: associative list with keys has an element that omits key "
        'field "name" (and doesn\'t have default value)'
    ]


def test_duplicates_of_old_objects_are_compared_as_a_whole():
    old = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "3"}]}}
    assert compare(POD, old, new)[0] == {"f:spec": {"f:containers": {'k:{"name":"a"}': {}}}}

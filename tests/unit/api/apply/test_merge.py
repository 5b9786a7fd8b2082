"""Server-side apply, by example and by its properties. [A7]"""

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import difference, paths, union
from sampan.api.apply.field_types import DEDUCED, STRING, KeyedList, Map, Struct, compare
from sampan.api.apply.managed_fields import Writer, after_write
from sampan.api.apply.merge import LAST_APPLIED, apply
from sampan.api.apply.typed_values import merged, set_of
from sampan.api.errors import BadRequest, Conflict, Failure
from sampan.api.schema.published import Schema

FIELDS = FieldSchema(Schema.load())
TIME = "2026-01-01T00:00:00Z"


def deployment(replicas=None, labels=None, containers=(), **meta):
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", **meta},
        "spec": {},
    }
    if labels is not None:
        obj["metadata"]["labels"] = labels
    if replicas is not None:
        obj["spec"]["replicas"] = replicas
    if containers:
        listed = [{"name": name, "image": image} for name, image in containers]
        obj["spec"]["template"] = {"spec": {"containers": listed}}
    return obj


def applied(live, config, manager="me", force=False, time=TIME, fields=FIELDS):
    result = apply(fields, live, config, Writer(manager, config["apiVersion"], time), force)
    meta = {k: v for k, v in result.obj["metadata"].items() if k != "managedFields"}
    if result.entries:
        meta["managedFields"] = result.entries
    return decoded({**result.obj, "metadata": meta})


def decoded(value):
    """As a decoder makes an object of it: null is nothing."""
    if isinstance(value, dict):
        return {key: decoded(item) for key, item in value.items() if item is not None}
    return [decoded(item) for item in value] if isinstance(value, list) else value


def updated(live, new, manager="other", fields=FIELDS):
    entries = after_write(fields, live, new, Writer(manager, new["apiVersion"], TIME))
    meta = {k: v for k, v in new["metadata"].items() if k != "managedFields"}
    if entries:
        meta["managedFields"] = entries
    return {**new, "metadata": meta}


def owners(obj):
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        for path in paths(entry["fieldsV1"]):
            found.setdefault(".".join(path), []).append(entry["manager"])
    return found


def test_an_apply_to_nothing_creates_what_it_says():
    made = applied({}, deployment(3, {"a": "b"}))
    assert (made["spec"], made["metadata"]["labels"]) == ({"replicas": 3}, {"a": "b"})
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": TIME,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}},
        }
    ]


def test_a_conflict_names_owner_version_and_field():
    made = updated({}, deployment(1), "kubectl-client-side-apply")
    with pytest.raises(Conflict) as caught:
        applied(made, deployment(3))
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: '
        ".spec.replicas"
    )
    assert caught.value.status()["code"] == 409
    assert caught.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
            "field": ".spec.replicas",
        }
    ]


def test_conflicts_with_several_owners_are_listed_by_owner():
    made = updated({}, deployment(1, {"a": "1"}), "zed")
    made = applied(made, deployment(containers=[("main", "app:1")]), "ann")
    with pytest.raises(Conflict) as caught:
        applied(made, deployment(2, {"a": "2"}, [("main", "app:2")]))
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "ann":\n'
        '- .spec.template.spec.containers[name="main"].image\n'
        'conflicts with "zed" using apps/v1:\n'
        "- .metadata.labels.a\n"
        "- .spec.replicas"
    )


def test_a_writer_through_a_subresource_is_named_with_it():
    made = deployment(1)
    entries = after_write(FIELDS, {}, made, Writer("scaler", "apps/v1", TIME, "scale"))
    made["metadata"]["managedFields"] = entries
    with pytest.raises(Conflict, match='conflict with "scaler" with subresource "scale" using'):
        applied(made, deployment(2))


def test_force_takes_the_field():
    made = updated({}, deployment(1, {"a": "b"}))
    made = applied(made, deployment(3), force=True)
    assert made["spec"]["replicas"] == 3
    assert owners(made)["f:spec.f:replicas"] == ["me"]
    assert owners(made)["f:metadata.f:labels.f:a"] == ["other"]


def test_the_same_value_is_owned_together():
    made = applied(updated({}, deployment(3)), deployment(3))
    assert sorted(owners(made)["f:spec.f:replicas"]) == ["me", "other"]
    made = applied(made, deployment())
    assert made["spec"] == {"replicas": 3}
    assert owners(made)["f:spec.f:replicas"] == ["other"]


def test_what_is_left_out_and_was_owned_alone_is_gone():
    made = applied({}, deployment(3, {"a": "1", "b": "2"}, [("main", "m:1"), ("side", "s:1")]))
    made = applied(made, deployment(None, {"b": "2"}, [("main", "m:1")]))
    assert made["metadata"]["labels"] == {"b": "2"}
    assert made["spec"]["template"]["spec"]["containers"] == [{"name": "main", "image": "m:1"}]
    assert set(made["spec"]) == {"template"}


def test_what_the_server_added_stays_when_an_item_stays():
    made = applied({}, deployment(containers=[("main", "m:1")]))
    made["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"  # a default
    made["spec"]["revisionHistoryLimit"] = 10
    made = applied(made, deployment(containers=[("main", "m:2")]))
    assert made["spec"]["template"]["spec"]["containers"] == [
        {"name": "main", "image": "m:2", "imagePullPolicy": "Always"}
    ]
    assert made["spec"]["revisionHistoryLimit"] == 10
    made = applied(made, deployment())
    assert made["spec"] == {"revisionHistoryLimit": 10}


def test_an_item_that_somebody_else_applies_stays_with_what_it_needs():
    made = applied({}, deployment(containers=[("main", "m:1")]))
    made = applied(made, deployment(containers=[("main", "m:1")]), "other")
    made = applied(made, deployment())
    assert made["spec"]["template"]["spec"]["containers"] == [{"name": "main", "image": "m:1"}]
    assert "spec" not in applied(made, deployment(), "other")


def test_an_item_goes_with_what_others_have_put_into_it():
    """As upstream: to own a field of an item is not to own the item."""
    made = applied({}, deployment(containers=[("main", "m:1")]))
    changed = deployment(containers=[("main", "m:1")])
    changed["metadata"] = made["metadata"]
    changed["spec"]["template"]["spec"]["containers"][0]["tty"] = True
    made = updated(made, changed, "other")
    made = applied(made, deployment())
    assert made["spec"] == {"template": {"spec": {}}}
    assert owners(made) == {"f:spec": ["me"]}


def test_what_was_emptied_is_empty_where_the_configuration_says_so():
    made = applied({}, deployment(1, {"a": "b"}))
    assert not applied(made, deployment(1, {}))["metadata"].get("labels")
    assert "labels" not in applied(made, deployment(1))["metadata"]


def test_the_first_apply_meets_what_nobody_kept_track_of():
    with pytest.raises(Conflict, match='conflict with "before-first-apply" using apps/v1'):
        applied(deployment(1), deployment(2))
    made = applied(deployment(1, {"a": "b"}), deployment(1))
    assert sorted(owners(made)["f:spec.f:replicas"]) == ["before-first-apply", "me"]


def test_an_apply_that_changes_nothing_keeps_its_time():
    made = applied({}, deployment(3))
    again = applied(made, deployment(3), time="2027-01-01T00:00:00Z")
    assert again == made
    other = applied(made, deployment(4), time="2027-01-01T00:00:00Z")
    assert other["metadata"]["managedFields"][0]["time"] == "2027-01-01T00:00:00Z"


def client_side(config, annotated=None):
    text = orjson.dumps(annotated or config).decode()
    annotations = {LAST_APPLIED: text}
    return {**config, "metadata": {**config["metadata"], "annotations": annotations}}


def test_kubectl_takes_over_what_its_client_side_apply_wrote():
    first = deployment(1, {"a": "b"})
    made = updated({}, client_side(first), "kubectl-client-side-apply")
    made = applied(made, deployment(2, {"a": "b"}), "kubectl")
    assert made["spec"]["replicas"] == 2
    assert owners(made)["f:spec.f:replicas"] == ["kubectl"]
    noted = orjson.loads(made["metadata"]["annotations"][LAST_APPLIED])
    assert noted == deployment(2, {"a": "b"})


def test_but_not_what_others_have_changed_since():
    made = updated({}, client_side(deployment(1)), "kubectl-client-side-apply")
    scaled = {**client_side(deployment(1)), "spec": {"replicas": 7}}
    made = updated(made, {**scaled, "metadata": made["metadata"]}, "scaler")
    with pytest.raises(Conflict, match='conflict with "scaler"'):
        applied(made, deployment(2), "kubectl")


def test_nobody_but_kubectl_takes_over():
    made = updated({}, client_side(deployment(1)), "kubectl-client-side-apply")
    with pytest.raises(Conflict):
        applied(made, deployment(2), "argocd")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"apiVersion":"apps/v1","spec":3}'])
def test_an_annotation_that_is_no_configuration_allows_nothing(text):
    made = deployment(1)
    made["metadata"]["annotations"] = {LAST_APPLIED: text}
    made = updated({}, made, "kubectl-client-side-apply")
    with pytest.raises(Conflict):
        applied(made, deployment(2), "kubectl")


def test_a_configuration_must_not_have_entries_nor_duplicates():
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        apply(FIELDS, {}, deployment(managedFields=[]), Writer("me", "apps/v1", TIME), False)
    with pytest.raises(Failure) as caught:
        applied({}, deployment(containers=[("a", "1"), ("a", "2")]))
    assert caught.value.message == (
        "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
        '.spec.template.spec.containers: duplicate entries for key [name="a"]'
    )


def test_an_applier_that_changes_its_version_keeps_one_entry():
    one = {
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"}, "spec": {"minReplicas": 2, "maxReplicas": 3},
    }  # fmt: skip
    made = {**applied({}, one), "apiVersion": "autoscaling/v2"}
    two = {**one, "apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 3}}
    made = applied(made, two)
    assert made["spec"] == {"maxReplicas": 3}
    assert [one["apiVersion"] for one in made["metadata"]["managedFields"]] == ["autoscaling/v2"]


# --- properties, in a small world with one field of each way of being owned


def world():
    inner = Struct(frozenset())
    inner.add("x", STRING)
    inner.add("labels", Map(STRING))
    item = Struct(frozenset())
    for key, node in (("name", STRING), ("value", STRING), ("inner", inner)):
        item.add(key, node)
    root = Struct(frozenset({"fixed"}))
    root.add("scalar", STRING)
    root.add("labels", Map(STRING))
    root.add("fixed", inner)
    root.add("optional", inner)
    root.add("items", KeyedList(item, ("name",)))
    root.add("values", KeyedList(STRING))
    for key in ("apiVersion", "kind"):
        root.add(key, STRING)
    root.add("metadata", Struct(frozenset(), DEDUCED))
    return root


WORLD = world()


class World:
    def root(self, api_version, kind):
        return WORLD

    def bare(self, api_version, kind):
        return {}

    def in_version(self, obj, api_version):
        return obj


SCALARS = st.sampled_from(["1", "2"])
KEYS = st.sampled_from("abc")


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


# None of them is empty: over a list or map with items an empty one becomes null, as upstream, and
# that is nothing once it is an object (test_typed_values.py).
LABELS = st.dictionaries(KEYS, SCALARS, min_size=1, max_size=2)
INNER = some(x=SCALARS, labels=LABELS).filter(bool)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": KEYS}, optional={"value": SCALARS, "inner": INNER}),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one["name"],
)
CONFIGS = some(
    scalar=SCALARS, labels=LABELS, fixed=INNER, optional=INNER, items=ITEMS,
    values=st.lists(KEYS, unique=True, min_size=1, max_size=2),
).map(lambda fields: {"apiVersion": "v1", "kind": "World", "metadata": {}, **fields})  # fmt: skip
WRITES = st.lists(
    st.tuples(st.sampled_from(["apply", "update"]), st.sampled_from(["ann", "bob"]), CONFIGS),
    min_size=1,
    max_size=6,
)


def written(live, write):
    how, manager, config = write
    if how == "apply":
        return applied(live, config, manager, force=True, fields=World())
    return updated(live, config, manager, fields=World())


# Owned still when others have taken away all that was in it, as upstream.
EMPTIED = {
    ("f:optional",), ("f:optional", "f:labels"), ("f:fixed", "f:labels"), ("f:labels",),
    ("f:values",),
    *(
        ("f:items", f'k:{{"name":"{name}"}}', *below)
        for name in "abc"
        for below in (("f:inner",), ("f:inner", "f:labels"))
    ),
}  # fmt: skip


def test_a_list_that_is_gone_is_still_owned_by_who_emptied_it():
    """As on an original, with the finalizers of a ConfigMap."""
    live = {}
    for how, config in (
        ("update", {"values": ["a"]}),
        ("apply", {"values": ["a", "b"]}),
        ("update", {"values": ["b"], "scalar": "1"}),
        ("apply", {}),
    ):
        live = written(live, (how, "ann", {"apiVersion": "v1", "metadata": {}, **config}))
    assert "values" not in live
    assert sets_of(live) == [{"f:values": {}, "f:scalar": {}}]


def sets_of(obj):
    return [one["fieldsV1"] for one in obj["metadata"].get("managedFields", ())]


@pytest.mark.slow
@given(WRITES)
def test_what_is_owned_is_there(writes):
    live = {}
    for write in writes:
        live = written(live, write)
        there = union(compare(WORLD, {}, live)[0], WORLD.named(set_of(WORLD, live)))
        there = union(there, {"f:fixed": {}})
        for fields in sets_of(live):
            gone = set(paths(difference(fields, there)))
            assert gone <= EMPTIED, gone


@pytest.mark.slow
@given(WRITES)
def test_an_update_has_its_fields_to_itself_among_updates(writes):
    live = {}
    for write in writes:
        live = written(live, write)
        entries = live["metadata"].get("managedFields", ())
        owned = [
            path
            for one in entries
            if one["operation"] == "Update"
            for path in paths(one["fieldsV1"])
        ]
        assert len(owned) == len(set(owned))


@pytest.mark.slow
@given(WRITES, CONFIGS)
def test_a_forced_apply_leaves_all_that_it_says(writes, config):
    live = {}
    for write in writes:
        live = written(live, write)
    live = written(live, ("apply", "ann", config))
    assert compare(WORLD, live, merged(WORLD, live, config)) == ({}, {})


@pytest.mark.slow
@given(WRITES, CONFIGS)
def test_applying_again_changes_nothing(writes, config):
    live = {}
    for write in writes:
        live = written(live, write)
    once = applied(live, config, "ann", force=True, fields=World())
    assume("managedFields" in once["metadata"])  # else the next apply would be a first one
    again = applied(once, config, "ann", time="2030-01-01T00:00:00Z", fields=World())
    assert again == once


@pytest.mark.slow
@given(WRITES, CONFIGS, CONFIGS)
def test_what_only_the_applier_owned_goes_when_it_is_left_out(writes, first, second):
    live = {}
    for write in writes:
        live = written(live, write)
    live = written(live, ("apply", "ann", first))
    others = {
        path
        for one in live["metadata"].get("managedFields", ())
        if one["operation"] == "Update" or one["manager"] != "ann"
        for path in paths(one["fieldsV1"])
    }
    wanted = set(paths(set_of(WORLD, second)))
    live = written(live, ("apply", "ann", second))
    left = set(paths(compare(WORLD, {}, live)[0]))
    for path in set(paths(set_of(WORLD, first))) - wanted - others:
        needed = any(other[: len(path)] == path for other in wanted | others)
        assert needed or path not in left


@pytest.mark.slow
@given(WRITES, CONFIGS)
def test_without_force_nothing_of_others_is_changed(writes, config):
    live = {}
    for write in writes:
        live = written(live, write)
    try:
        new = applied(live, config, "carl", fields=World())
    except Conflict:
        return
    changed, _ = compare(WORLD, live, new)
    for fields in sets_of(live):
        assert not set(paths(fields)) & set(paths(changed))

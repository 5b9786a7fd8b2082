"""Who owns what after writes that are no applies. [A7] [A8]"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import in_canonical_order, paths
from sampan.api.apply.field_types import compare
from sampan.api.apply.managed_fields import (
    MAX_UPDATERS,
    OLD_CHANGES,
    Writer,
    after_write,
    chosen_entries,
    in_order,
    manager_from_user_agent,
    same_but_times,
    without_server_fields,
)
from sampan.api.schema.published import Schema

FIELDS = FieldSchema(Schema.load())


def config_map(data=None, entries=None, **meta):
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **meta}}
    if data is not None:
        obj["data"] = data
    if entries is not None:
        obj["metadata"]["managedFields"] = entries
    return obj


def writer(manager="me", time="2026-01-01T00:00:00Z", **rest):
    return Writer(manager, "v1", time, **rest)


def entry(manager, fields, **rest):
    return {
        "manager": manager, "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields, **rest,
    }  # fmt: skip


def test_the_creator_owns_all_but_what_is_everybodys():
    new = config_map({"a": "1"}, uid="u", resourceVersion="3", labels={"x": "y"})
    assert after_write(FIELDS, {}, new, writer()) == [
        entry(
            "me",
            {
                "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
                "f:data": {".": {}, "f:a": {}},
            },
        )
    ]


def test_nothing_to_own_is_no_entry():
    assert after_write(FIELDS, {}, config_map(), writer()) == []


def test_who_changes_a_field_takes_it_and_the_rest_stays():
    old = config_map(
        {"a": "1", "b": "1"}, [entry("me", {"f:data": {".": {}, "f:a": {}, "f:b": {}}})]
    )
    new = config_map({"a": "1", "b": "2", "c": "3"})
    found = after_write(FIELDS, old, new, writer("you", "2026-01-02T00:00:00Z"))
    assert [(one["manager"], one["fieldsV1"]) for one in found] == [
        ("me", {"f:data": {".": {}, "f:a": {}}}),
        ("you", {"f:data": {"f:b": {}, "f:c": {}}}),
    ]


def test_what_is_removed_belongs_to_nobody():
    old = config_map({"a": "1"}, [entry("me", {"f:data": {".": {}, "f:a": {}}})])
    assert after_write(FIELDS, old, config_map(), writer("you")) == []


def test_who_writes_again_has_one_entry_with_the_later_time():
    old = config_map({"a": "1"}, [entry("me", {"f:data": {".": {}, "f:a": {}}})])
    found = after_write(FIELDS, old, config_map({"a": "2"}), writer(time="2026-01-03T00:00:00Z"))
    assert found == [entry("me", {"f:data": {".": {}, "f:a": {}}}, time="2026-01-03T00:00:00Z")]


def test_a_write_that_changes_nothing_leaves_the_entries_alone():
    entries = [entry("me", {"f:data": {".": {}, "f:a": {}}})]
    old = config_map({"a": "1"}, entries)
    assert after_write(FIELDS, old, config_map({"a": "1"}), writer("you")) is entries


def test_an_object_without_entries_gets_none_by_an_update():
    """As upstream: only an apply starts to keep track."""
    assert after_write(FIELDS, config_map({"a": "1"}), config_map({"a": "2"}), writer()) == []


def test_what_a_door_does_not_change_is_not_owned_through_it():
    old = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    old["metadata"]["managedFields"] = [entry("me", {"f:status": {"f:phase": {}}})]
    new = {**old, "metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"phase": "No"}}
    found = after_write(FIELDS, old, new, writer("you", ignored={"f:status": {}}))
    assert [(one["manager"], one["fieldsV1"]) for one in found] == [
        ("me", {"f:status": {"f:phase": {}}}),
        ("you", {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}),
    ]


def test_the_subresource_is_part_of_who_writes():
    old = config_map({"a": "1"}, [entry("me", {"f:data": {"f:a": {}}})])
    found = after_write(FIELDS, old, config_map({"a": "2"}), writer(subresource="scale"))
    assert [(one["manager"], one.get("subresource")) for one in found] == [("me", "scale")]


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (None, "live"),
        ([], []),
        ([{}], []),
        ([{"manager": "x"}], "live"),
        ([{}, {}], "live"),
        ([entry("x", {"q:a": {}})], "live"),
        ([entry("x", {'k:{"b":1, "a":2}': {".": {}}})], [entry("x", {'k:{"a":2,"b":1}': {}})]),
    ],
)
def test_entries_that_a_caller_sends(sent, taken):
    """[] and [{}] reset; what cannot be read, or is not there, leaves the live entries."""
    own = [entry("me", {"f:data": {"f:a": {}}})]
    live = config_map({"a": "1"}, own)
    assert chosen_entries(config_map({"a": "1"}, sent), live) == (own if taken == "live" else taken)


def test_the_oldest_of_too_many_are_put_together():
    entries = [
        entry(f"m{n:02}", {"f:data": {f"f:k{n}": {}}}, time=f"2026-01-01T00:00:{n:02}Z")
        for n in range(MAX_UPDATERS)
    ]
    old = config_map({f"k{n}": "1" for n in range(MAX_UPDATERS)}, entries)
    new = config_map({**old["data"], "new": "1"})
    found = after_write(FIELDS, old, new, writer("late", "2026-02-01T00:00:00Z"))
    assert len(found) == MAX_UPDATERS
    assert (found[0]["manager"], found[0]["fieldsV1"]) == (
        OLD_CHANGES, {"f:data": {"f:k0": {}, "f:k1": {}}}
    )  # fmt: skip
    assert found[0]["time"] == "2026-01-01T00:00:01Z"
    assert found[-1]["manager"] == "late"


def test_entries_of_another_version_are_seen_in_that_version():
    scaler = {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"}, "spec": {"minReplicas": 1, "maxReplicas": 3},
    }  # fmt: skip
    own = entry("old", {"f:spec": {"f:minReplicas": {}, "f:maxReplicas": {}}})
    own["apiVersion"] = "autoscaling/v1"
    scaler["metadata"]["managedFields"] = [own]
    new = {**scaler, "metadata": {"name": "a"}, "spec": {"minReplicas": 1, "maxReplicas": 5}}
    write = Writer("new", "autoscaling/v2", "2026-01-02T00:00:00Z")
    found = after_write(FIELDS, scaler, new, write)
    assert [(one["apiVersion"], one["fieldsV1"]) for one in found] == [
        ("autoscaling/v1", {"f:spec": {"f:minReplicas": {}}}),
        ("autoscaling/v2", {"f:spec": {"f:maxReplicas": {}}}),
    ]
    assert FIELDS.in_version(scaler, "apps/v1") is None


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.32.0 (linux/amd64) kubernetes/abc", "kubectl"),
        ("plain", "plain"),
        ("a\nb\x00c/1", "abc"),
        ("é" * 100, "é" * 64),
        ("", ""),
    ],
)
def test_the_manager_is_the_first_word_of_the_user_agent(agent, manager):
    assert manager_from_user_agent(agent) == manager


def test_times_alone_are_no_difference():
    one, two = entry("me", {"f:a": {}}), entry("me", {"f:a": {}}, time="2027-01-01T00:00:00Z")
    assert same_but_times([one], [two])
    assert not same_but_times([one], [entry("me", {"f:b": {}})])
    assert not same_but_times([one], [])


@pytest.mark.parametrize("absent", [(), ("time",), ("manager", "apiVersion")])
def test_entries_of_one_writer_and_moment_are_in_the_order_of_their_doors(absent):
    entry = {"operation": "Update", "time": "1", "manager": "me", "apiVersion": "v1"}
    main = {key: value for key, value in entry.items() if key not in absent}
    status = {**main, "subresource": "status"}
    earlier = {**main, "operation": "Apply"}
    assert in_order([status, main, earlier]) == [earlier, main, status]


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["me", "you"]), DATA), max_size=8))
def test_who_owns_what_is_what_sets_of_paths_say(writes):
    root, old, owned = FIELDS.root("v1", "ConfigMap"), {}, {}
    for number, (manager, data) in enumerate(writes):
        entries = old["metadata"].get("managedFields", []) if old else []
        new = config_map(data or None, entries)
        sets = compare(root, old, config_map(data or None))
        changed, removed = (set(paths(without_server_fields(item))) for item in sets)
        if entries or not old:  # else nobody keeps track
            owned = {name: kept - changed - removed for name, kept in owned.items()}
            owned[manager] = owned.get(manager, set()) | changed
        found = after_write(FIELDS, old, new, writer(manager, str(number)))
        members = {item["manager"]: set(paths(item["fieldsV1"])) for item in found}
        owned = {name: kept for name, kept in owned.items() if kept}
        assert members == owned
        assert repr([item["fieldsV1"] for item in found]) == repr(
            [in_canonical_order(item["fieldsV1"]) for item in found]
        )
        if changed and owned:
            assert found[-1]["manager"] == manager
            assert found[-1]["time"] == str(number)
        old = config_map(data or None, found)


def test_who_writes_again_what_is_already_his_has_the_same_fields_at_a_later_time():
    before = entry("me", {"f:data": {".": {}, "f:a": {}, "f:b": {}}})
    old = config_map({"a": "1", "b": "1"}, [before])
    again = after_write(FIELDS, old, config_map({"a": "2", "b": "1"}), writer(time="2027"))
    assert again == [{**before, "time": "2027"}]
    assert again[0]["fieldsV1"] is before["fieldsV1"]
    assert list(again[0]) == list(before)

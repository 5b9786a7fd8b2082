import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.storage.packing import Patterns
from sampan.apiserver.storage.sharing import SharedValues
from sampan.apiserver.storage.stored_form import (
    NotAnObject,
    at_revision,
    canonical,
    item_from,
    same_content,
    share_parts,
    stored_bytes,
    with_revision,
)

TEXT = st.text(max_size=20)
OBJECTS = st.fixed_dictionaries(
    {
        "spec": st.dictionaries(TEXT, TEXT | st.integers(-(2**53), 2**53), max_size=4),
        "metadata": st.fixed_dictionaries(
            {"name": TEXT, "resourceVersion": st.just("9")},
            optional={"annotations": st.dictionaries(TEXT, TEXT, max_size=3)},
        ),
        "kind": st.just("Pod"),
        "apiVersion": st.just("v1"),
    }
)


@given(OBJECTS, st.integers(1, 10**9))
def test_a_revision_is_spliced_in_without_parsing(obj, revision):
    value = stored_bytes(canonical(obj))
    assert value.startswith(b'{"apiVersion":"v1","kind":"Pod","metadata":{')
    assert "resourceVersion" not in orjson.loads(value)["metadata"]
    shown = orjson.loads(with_revision(value, revision))
    assert shown["metadata"].pop("resourceVersion") == str(revision)
    assert shown == orjson.loads(value)


@given(OBJECTS, st.integers(1, 10**6), st.integers(1, 10**9))
def test_parsed_and_serialised_forms_of_an_item_agree(obj, revision, later):
    item = item_from("k", stored_bytes(canonical(obj)), revision, None)
    assert orjson.loads(item.data) == item.obj
    moved = at_revision(item, later)
    assert orjson.loads(moved.data) == moved.obj
    assert moved.obj["metadata"]["resourceVersion"] == str(later)
    assert item.obj["metadata"]["resourceVersion"] == str(revision)


def test_the_writers_own_form_is_taken_over():
    ordered = canonical({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    item = item_from("k", stored_bytes(ordered), 5, ordered)
    assert item.obj is ordered
    same, other = canonical(ordered), canonical({**ordered, "spec": {}})
    assert same_content(item, stored_bytes(same), same)
    assert not same_content(item, stored_bytes(other), other)


def test_the_order_of_fields_is_no_content():
    ordered = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "uid": "u"}, "x": 1}
    item = item_from("k", stored_bytes(ordered), 5, ordered)
    turned = canonical({**ordered, "metadata": {"uid": "u", "name": "a"}})
    assert stored_bytes(turned) != stored_bytes(canonical(ordered))
    assert same_content(item, stored_bytes(turned), turned)
    other = canonical({**ordered, "metadata": {"uid": "v", "name": "a"}})
    assert not same_content(item, stored_bytes(other), other)


def test_events_are_kept_as_bytes_only_and_parsed_for_each_reader():
    """they are many, and hardly ever read"""
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Started"}
    item = item_from("k", stored_bytes(canonical(event)), 7, event)
    assert item.obj == {**event, "metadata": {"resourceVersion": "7", "name": "e"}}
    assert item.obj is not item.obj
    assert at_revision(item, 9).obj["metadata"]["resourceVersion"] == "9"
    assert same_content(item, stored_bytes(canonical(event)), canonical(event))


def test_events_that_are_kept_are_packed_behind_each_other():
    patterns, items = Patterns(), []
    for name in "ab":
        meta = {"name": name, "labels": {"l": "x" * 500}}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": meta, "reason": "Started"}
        items.append(item_from(name, stored_bytes(canonical(event)), 7, None, patterns))
    assert [item.obj["metadata"]["name"] for item in items] == ["a", "b"]
    assert orjson.loads(items[1].data) == items[1].obj
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [item_from("k", stored_bytes(event), 7, None, patterns) for _ in range(100)]
        taken = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()
    assert taken < 400


def pod_item(sharing, name, before=None, **spec):
    made = {"nodeName": name, "tolerations": [{"key": "k"}], **spec}
    metadata = {"name": name, "labels": {"app": "web"}, "managedFields": [{"manager": "m"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made}
    item = item_from(name, stored_bytes(canonical(pod)), 5, None)
    share_parts(item, before, sharing)
    assert orjson.loads(item.data) == item.obj
    return item


def test_pods_of_one_template_share_what_is_the_templates():
    """[E2] what a pod costs in memory is what is its own"""
    sharing = SharedValues()
    containers = [{"name": "c"}]
    _, one, two = (pod_item(sharing, name, containers=containers) for name in "abc")
    for part in ("containers", "tolerations"):
        assert one.obj["spec"][part] is two.obj["spec"][part]
    assert one.obj["spec"]["nodeName"] == "b"
    assert one.obj["metadata"]["labels"] is two.obj["metadata"]["labels"]
    assert one.obj["metadata"]["managedFields"][0] is two.obj["metadata"]["managedFields"][0]


def test_pods_that_are_alike_keep_no_bytes():
    """[E2] their parts are shared, and bytes that are made of them take microseconds"""
    sharing = SharedValues()
    items = [
        pod_item(sharing, f"pod-{number}", containers=[{"image": "i" * 4000}])
        for number in range(300)
    ]
    del items[:]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        items = [
            pod_item(sharing, f"pod-{number}", containers=[{"image": "i" * 4000}])
            for number in range(300)
        ]
        taken = (tracemalloc.get_traced_memory()[0] - before) / len(items)
    finally:
        tracemalloc.stop()
    assert taken < 3000
    assert all(item.size > 4000 for item in items)


def test_what_has_a_name_of_its_own_inside_is_shared_around_it():
    """every pod's token volume has one"""
    sharing = SharedValues()
    items = []
    for name in "abc":
        mounts = [{"name": "data", "mountPath": "/d"}, {"name": f"token-{name}", "mountPath": "/t"}]
        container = {"name": "c", "env": [{"name": "A"}], "volumeMounts": mounts}
        volume = {"name": f"token-{name}", "projected": {"sources": [{"x": "y"}]}}
        items.append(pod_item(sharing, name, containers=[container], volumes=[volume]))
    one, two = (item.obj["spec"] for item in items[1:])
    assert one["volumes"][0] is not two["volumes"][0]
    assert one["volumes"][0]["projected"] is two["volumes"][0]["projected"]
    mine, other = one["containers"][0], two["containers"][0]
    assert mine["env"] is other["env"]
    assert mine["volumeMounts"][0] is other["volumeMounts"][0]
    assert mine["volumeMounts"][1]["name"] == "token-b"


def status_item(sharing, number, before=None):
    """As a node writes it: an address, an id and a time of its own."""
    ip, now = f"10.0.0.{number}", f"2026-01-01T00:00:{number:02}Z"
    fields = {"f:phase": {}, "f:podIPs": {".": {}, f'k:{{"ip":"{ip}"}}': {"f:ip": {}}}}
    fields["f:conditions"] = {'k:{"type":"Ready"}': {".": {}, "f:status": {}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{number}",
            "managedFields": [
                {"manager": "kubelet", "time": now, "fieldsV1": {"f:status": fields}}
            ],
        },
        "status": {
            "podIP": ip,
            "containerStatuses": [
                {"name": "c", "containerID": f"simulated://{number}", "resources": {"cpu": "1"}}
            ],
        },
    }
    item = item_from(f"p{number}", stored_bytes(canonical(pod)), 5, None)
    share_parts(item, before, sharing)
    assert orjson.loads(item.data) == item.obj
    return item


def test_of_a_status_and_of_whose_fields_are_whose_only_what_is_its_own_is_kept():
    sharing = SharedValues()
    _, one, two = (status_item(sharing, number).obj for number in (1, 2, 3))
    mine, other = (pod["status"]["containerStatuses"][0] for pod in (one, two))
    assert mine["containerID"] != other["containerID"]
    assert mine["resources"] is other["resources"]
    mine, other = (pod["metadata"]["managedFields"][0]["fieldsV1"] for pod in (one, two))
    assert mine["f:status"]["f:conditions"] is other["f:status"]["f:conditions"]
    assert mine["f:status"]["f:podIPs"] != other["f:status"]["f:podIPs"]


def test_what_a_write_has_left_as_it_was_is_the_object_of_before():
    sharing = SharedValues()
    before = status_item(sharing, 1)
    after = status_item(sharing, 1, before)
    assert after.obj["status"] is before.obj["status"]
    entries = (item.obj["metadata"]["managedFields"][0] for item in (before, after))
    assert next(entries) is next(entries)


def test_sharing_changes_nothing_that_somebody_else_holds():
    sharing = SharedValues()
    for _ in range(2):
        sharing.shared([{"name": "c"}])
    spec = {"containers": [{"name": "c"}]}
    ordered = canonical({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    ordered["spec"] = spec
    mine = spec["containers"]
    item = item_from("k", stored_bytes(ordered), 5, ordered)
    share_parts(item, None, sharing)
    assert spec["containers"] is mine
    assert item.obj["spec"]["containers"] is not mine


def test_what_a_write_has_left_alone_is_not_looked_at_again():
    sharing = SharedValues()
    before = pod_item(sharing, "a", containers=[{"name": "c"}])
    after = item_from("a", stored_bytes(canonical(before.obj)), 6, canonical(before.obj))
    share_parts(after, before, sharing)
    assert after.obj["spec"] is before.obj["spec"]


def test_stored_bytes_take_no_more_memory_than_they_are_long():
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x" * 700}}
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [stored_bytes(obj) for _ in range(200)]
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken < 1.3 * sum(map(len, kept))


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
NO_OBJECTS = [
    b"", b"\0", b"\xff\xfe", b"k8s\0\n\x0c", b"null", b"7", b"[]", b"{}", b'{"metadata":{}}',
    b"[" * 5000, b'{"apiVersion":"v1","kind":"Event",', b'{"apiVersion":"v1","kind":"Pod",',
    b'{"apiVersion":"v1","kind":"Event","metadata":{}}',
    *(
        orjson.dumps({**POD, **other})
        for other in (
            {"apiVersion": 1}, {"kind": None}, {"metadata": "p"}, {"metadata": {"name": 5}},
            {"metadata": {"name": "p", "labels": 5}}, {"spec": "x"}, {"status": [1]},
            {"metadata": {"name": "p", "ownerReferences": {}}},
        )
    ),
    b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"x":%b%b}}'
    % (b"[" * 300, b"]" * 300),
]  # fmt: skip


@pytest.mark.parametrize("value", NO_OBJECTS)
def test_bytes_that_are_no_object_are_that_and_nothing_else(value):
    with pytest.raises(NotAnObject):
        item_from("a/p", value, 7, None)


@pytest.mark.parametrize(
    "value",
    [
        b'{"kind":"Pod","spec":{"template":{"metadata":{"name":"inner"}}},"apiVersion":"v1",'
        b'"metadata":{"name":"p","resourceVersion":"3"}}',
        b'{ "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "p"}}',
        b'{"metadata":{"labels":null,"name":"p"},"apiVersion":"v1","kind":"Event"}',
        b'{"apiVersion":"v1","kind":"Event","metadata":{"name":"p","resourceVersion":"3"}}',
    ],
)
def test_an_object_that_somebody_else_has_written_is_stored_in_our_order(value):
    item = item_from("a/p", value, 7, None)
    written = orjson.loads(value)
    expected = {**written, "metadata": {**written["metadata"], "resourceVersion": "7"}}
    assert item.obj == orjson.loads(item.data) == expected
    assert item.data.count(b'"resourceVersion"') == 1


def test_where_one_kind_is_stored_another_is_no_object():
    value = orjson.dumps(POD)
    assert item_from("a/p", value, 7, None, kind="Pod").obj["kind"] == "Pod"
    with pytest.raises(NotAnObject, match="no Secret"):
        item_from("a/p", value, 7, None, kind="Secret")

import orjson
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.sharing import SharedValues
from sampan.apiserver.stored import (
    at_revision,
    canonical,
    item_from,
    same_content,
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


def test_pods_of_one_template_share_what_is_the_templates():
    """[E2] what a pod costs in memory is what is its own"""
    sharing = SharedValues()

    def made(name):
        spec = {"nodeName": name, "containers": [{"name": "c"}], "tolerations": [{"key": "k"}]}
        metadata = {"name": name, "labels": {"app": "web"}, "managedFields": [{"manager": "m"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return item_from(name, stored_bytes(canonical(pod)), 5, None, sharing)

    one, two = made("a"), made("b")
    for item in (one, two):
        assert orjson.loads(item.data) == item.obj
    for part in ("containers", "tolerations"):
        assert one.obj["spec"][part] is two.obj["spec"][part]
    assert one.obj["spec"]["nodeName"] == "a"
    assert one.obj["metadata"]["labels"] is two.obj["metadata"]["labels"]
    assert one.obj["metadata"]["managedFields"][0] is two.obj["metadata"]["managedFields"][0]


def test_sharing_changes_nothing_that_somebody_else_holds():
    sharing = SharedValues()
    spec = {"containers": [{"name": "c"}]}
    sharing.shared([{"name": "c"}])
    ordered = canonical({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    ordered["spec"] = spec
    mine = spec["containers"]
    item = item_from("k", stored_bytes(ordered), 5, ordered, sharing)
    assert spec["containers"] is mine
    assert item.obj["spec"]["containers"] is not mine
    again = item_from("k", stored_bytes(ordered), 6, canonical(item.obj), sharing)
    assert again.obj["spec"] is item.obj["spec"]

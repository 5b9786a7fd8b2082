"""A version of a custom kind: what is compiled once, and for whom it still holds."""

from sampan.api.custom.custom_version import CustomKind
from sampan.api.schema.published import Schema

SCHEMA = Schema.load()


def definition(fields, versions=("v1",), **more):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": one, "served": True, "storage": one == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                }
                for one in versions
            ],
            **more,
        },
    }  # fmt: skip


def kind(*args, **more):
    return CustomKind(definition(*args, **more), SCHEMA)


def test_the_same_schema_is_not_compiled_again():
    old = kind({"a": {"type": "string"}}).versions["v1"]
    new = kind({"a": {"type": "string"}}).versions["v1"]
    assert old.shown({"apiVersion": "example.com/v1", "spec": {"a": "x"}}) is not None
    assert new.same_as(old)
    new.adopt(old, new.family.shows_as(old.family))
    assert new.root is old.root
    assert new.schema_token is old.schema_token


def test_another_version_is_shown_with_the_defaults_of_both():
    found = kind({"a": {"type": "string", "default": "d"}}, ("v1", "v2"))
    stored = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}, "spec": {"zz": 1}}
    shown = found.versions["v2"].shown(stored)
    assert shown == {**stored, "apiVersion": "example.com/v2", "spec": {"a": "d"}}


def test_only_a_webhook_can_tell_where_there_is_one():
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {}}}
    found = kind({}, ("v1", "v2"), conversion=conversion)
    assert found.versions["v2"].shown({"apiVersion": "example.com/v1"}) is None
    assert found.versions["v1"].shown({"apiVersion": "example.com/v1"}) is not None


def test_a_deprecated_version_names_the_one_to_use():
    spec = definition({}, ("v2", "v1beta1"))
    spec["spec"]["versions"][1]["deprecated"] = True
    found = CustomKind(spec, SCHEMA).versions["v1beta1"]
    assert found.warning == "example.com/v1beta1 Widget is deprecated; use example.com/v2 Widget"


HEAD = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}}


def test_a_change_after_the_first_look_is_seen():
    """What was found sound is remembered by what it says, not by which object said it."""
    version = kind({"a": {"type": "string", "maxLength": 3}}).storage
    obj = version.decoded({**HEAD, "spec": {"a": "abc"}}).obj
    assert version.is_sound(obj)
    obj["metadata"]["labels"] = {"a": "b"}
    assert version.is_sound(obj)
    obj["spec"]["a"] = "abcd"
    assert not version.is_sound(obj)
    obj["spec"]["a"] = "abc"
    obj["extra"] = 1
    assert not version.is_sound(obj)


def test_a_decoded_object_shares_nothing_with_what_came_in():
    version = kind({"a": {"type": "array", "items": {"type": "string"}}}).storage
    body = {**HEAD, "spec": {"a": ["x"]}}
    for _ in range(2):  # the second time it is known
        obj = version.decoded(body).obj
        assert obj == body
        assert list(obj) == list(body)
        obj["spec"]["a"].append("y")
        assert body["spec"] == {"a": ["x"]}


def test_what_nobody_else_has_is_not_copied_but_for_its_metadata():
    version = kind({"a": {"type": "array", "items": {"type": "string"}}}).storage
    body = {**HEAD, "spec": {"a": ["x"]}}
    obj = version.decoded(body, is_ours=True).obj
    assert obj == body
    assert obj["spec"] is body["spec"]
    assert obj["metadata"] is not body["metadata"]

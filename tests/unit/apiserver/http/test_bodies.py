import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import strict_json
from sampan.api.calls import DEFAULT_OPTIONS
from sampan.api.errors import BadRequest, Invalid, RequestEntityTooLarge, UnsupportedMediaType
from sampan.api.protobuf.codec import ProtobufReader
from sampan.api.schema.published import Schema
from sampan.apiserver.http.bodies import body_of, delete_options, patch_body_of
from sampan.core.http.messages import Request


@pytest.fixture(scope="module")
def protobuf():
    return ProtobufReader(Schema.load())


def request(body, content_type="", **more):
    headers = {"content-type": content_type} if content_type else {}
    return Request("POST", "/", "", headers, body, **more)


def test_repeated_fields_are_found_unless_ignored(protobuf):
    twice = request(b'{"a":{"b":1,"b":2}}')
    assert body_of(twice, "Warn", protobuf) == ({"a": {"b": 2}}, ('duplicate field "a.b"',))
    assert body_of(twice, "Ignore", protobuf) == ({"a": {"b": 2}}, ())


REPEATED = 'yaml: unmarshal errors:\n  line 1: key "a" already set in map'


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b'{"a":{"b":1}}', ({"a": {"b": 1}}, ())),
        (b"{a: {b: 1}}", ({"a": {"b": 1}}, ())),
        (b"a:\n  b: 1\n", ({"a": {"b": 1}}, ())),
        (b'{"a":1,"a":2}', ({"a": 2}, (REPEATED,))),
    ],
)
def test_yaml_may_be_json(body, read):
    assert patch_body_of(request(body), "apply", "Warn") == read


JSON_VALUES = st.recursive(
    st.text(max_size=8) | st.integers(-5, 5) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4), st.booleans())
def test_the_cheap_look_for_repeats_misses_none(value, spaced):
    reader = ProtobufReader(SCHEMA)
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if spaced else None)
    for body in (text, text[:-1] + b',"zz":1,"zz":1}' if value else b'{"zz":1,"zz":1}'):
        _, problems = body_of(request(body), "Strict", reader)
        assert problems == tuple(strict_json.parse(body).duplicates)


SCHEMA = Schema.load()


def test_what_cannot_be_read_is_refused(protobuf):
    with pytest.raises(BadRequest, match="json parse error"):
        body_of(request(b"{"), "Warn", protobuf)
    with pytest.raises(BadRequest, match="converting YAML to JSON"):
        body_of(request(b"a: [", "application/yaml"), "Warn", protobuf)
    with pytest.raises(RequestEntityTooLarge, match="limit is 3145728"):
        body_of(request(b"", body_too_large=True), "Warn", protobuf)
    with pytest.raises(BadRequest, match="protobuf"):
        body_of(request(b"{}", "application/vnd.kubernetes.protobuf"), "Warn", protobuf)
    with pytest.raises(UnsupportedMediaType):
        body_of(request(b"{}", "text/plain"), "Warn", protobuf)


def test_delete_options_overrule_the_query(protobuf):
    assert delete_options(request(b""), DEFAULT_OPTIONS, protobuf) is DEFAULT_OPTIONS
    body = orjson.dumps(
        {
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u", "resourceVersion": "5"},
            "dryRun": ["All"],
        }
    )
    found = delete_options(request(body), DEFAULT_OPTIONS, protobuf)
    assert (found.grace_seconds, found.propagation, found.dry_run) == (0, "Foreground", True)
    assert (found.precondition_uid, found.precondition_resource_version) == ("u", "5")
    old = delete_options(request(b'{"orphanDependents":true}'), DEFAULT_OPTIONS, protobuf)
    assert old.propagation == "Orphan"
    with pytest.raises(Invalid):
        delete_options(request(b'{"propagationPolicy":"x"}'), DEFAULT_OPTIONS, protobuf)
    with pytest.raises(BadRequest):
        delete_options(request(b'{"kind":"Pod"}'), DEFAULT_OPTIONS, protobuf)


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_a_body_has_a_depth(protobuf, content_type):
    def nested(depth):
        return request(b'{"a":' * depth + b"1" + b"}" * depth, content_type)

    assert body_of(nested(199), "Warn", protobuf)
    for depth in (201, 2_000, 200_000):
        with pytest.raises(BadRequest):
            body_of(nested(depth), "Warn", protobuf)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"preconditions":[]}', "array into Go struct field DeleteOptions.preconditions"),
        (b'{"gracePeriodSeconds":"x"}', "string into Go struct field"),
        (b'{"orphanDependents":1}', "number into Go struct field"),
        (b'{"propagationPolicy":{}}', "object into Go struct field"),
        (b'{"dryRun":true}', "bool into Go struct field"),
    ],
)
def test_delete_options_of_the_wrong_type_are_refused(protobuf, body, said):
    with pytest.raises(BadRequest, match=said):
        delete_options(request(body), DEFAULT_OPTIONS, protobuf)


def test_an_unknown_dry_run_in_delete_options_is_refused(protobuf):
    with pytest.raises(Invalid, match="Unsupported value"):
        delete_options(request(b'{"dryRun":["Some"]}'), DEFAULT_OPTIONS, protobuf)

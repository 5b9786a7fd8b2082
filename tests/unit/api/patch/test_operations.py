"""Operations of JSON patches, and what is said of what is none."""

import re

import pytest

from sampan.api.patch.operations import Literal, as_written, read_operations, resolved
from sampan.api.patch.operations import unknown_members as unknown


def test_null_is_a_patch_without_operations():
    assert read_operations(b"null") == []
    assert read_operations(b"null", is_checked=True) == []


@pytest.mark.parametrize(
    ("body", "is_checked", "why"),
    [
        (b"{}", False, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (b"[1]", False, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (b"[", False, "unexpected end of JSON input"),
        (b"{}", True, "error decoding patch: json: cannot unmarshal object into Go value of type "
         "[]handlers.jsonPatchOp"),
        (b'[""]', True, "error decoding patch: json: cannot unmarshal string into Go value of type "
         "handlers.jsonPatchOp"),
        (b'[{"op":1}]', True, "error decoding patch: json: cannot unmarshal number into Go struct "
         "field jsonPatchOp.op of type string"),
        (b'[{"value":1e400}]', True, "error decoding patch: json: cannot unmarshal number 1e400 "
         "into Go struct field jsonPatchOp.value of type float64"),
        (b"[] x", True, "error decoding patch: invalid character 'x' after top-level value"),
    ],
)  # fmt: skip
def test_what_is_no_patch_is_refused_in_gos_words(body, is_checked, why):
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        read_operations(body, is_checked)
    assert str(caught.value) == why


def test_members_that_nobody_knows_are_named():
    assert unknown([None, {"op": "add", "Path": "/x"}]) == ['unknown field "[1].Path"']


def test_scalars_of_values_keep_their_text():
    body = b'[{"op":"test","path":"/\\u0061","value":{"n":1.50,"s":"\\u0041","l":[null,true]}}]'
    [written] = as_written(read_operations(body))
    assert written["path"] == "/a"
    value = written["value"]
    assert isinstance(value["n"], Literal)
    assert (value["n"].text, value["s"].text, value["l"]) == (b"1.50", b'"\\u0041"', [None, True])
    assert resolved(value) == {"n": 1.5, "s": "A", "l": [None, True]}

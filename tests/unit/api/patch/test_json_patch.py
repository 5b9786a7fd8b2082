"""JSON patch as the original's library applies it; flow/test_recorded_patches.py has more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import BadRequest, Invalid, RequestEntityTooLarge
from sampan.api.objects import copy_of
from sampan.api.patch.json_patch import json_patch
from sampan.api.patch.operations import read_operations

DOCUMENT = {"a": {"b": [1, 2, 3]}, "c/d": 1, "e~f": None}


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/x", "value": {"y": 1}}, {**DOCUMENT, "x": {"y": 1}}),
        ({"op": "add", "path": "/a/b/1", "value": 9}, {**DOCUMENT, "a": {"b": [1, 9, 2, 3]}}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/a/b/3", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/a", "value": 1}, {**DOCUMENT, "a": 1}),
        ({"op": "add", "path": "/a/b/01", "value": 9}, {**DOCUMENT, "a": {"b": [1, 9, 2, 3]}}),
        ({"op": "add", "path": "/a/b/+1", "value": 9}, {**DOCUMENT, "a": {"b": [1, 9, 2, 3]}}),
        ({"op": "add", "path": "/a/b/-1", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/x"}, {**DOCUMENT, "x": None}),
        ({"op": "add", "path": "any/x", "value": 1}, {**DOCUMENT, "x": 1}),
        ({"op": "replace", "path": "/x", "value": 1}, {**DOCUMENT, "x": 1}),
        ({"op": "replace", "path": "/a"}, {**DOCUMENT, "a": None}),
        ({"op": "replace", "path": "", "value": {}}, {}),
        ({"op": "copy", "from": "/x", "path": "/y"}, {**DOCUMENT, "y": None}),
        ({"op": "remove", "path": "/a/b/0"}, {**DOCUMENT, "a": {"b": [2, 3]}}),
        ({"op": "remove", "path": "/a/b/-1"}, {**DOCUMENT, "a": {"b": [1, 2]}}),
        ({"op": "remove", "path": "/c~1d"}, {"a": {"b": [1, 2, 3]}, "e~f": None}),
        ({"op": "replace", "path": "/e~0f", "value": 5}, {**DOCUMENT, "e~f": 5}),
        ({"op": "replace", "path": "/a/b/2", "value": 5}, {**DOCUMENT, "a": {"b": [1, 2, 5]}}),
        ({"op": "move", "from": "/a/b/0", "path": "/x"},
         {**DOCUMENT, "a": {"b": [2, 3]}, "x": 1}),
        ({"op": "copy", "from": "/a", "path": "/x"}, {**DOCUMENT, "x": {"b": [1, 2, 3]}}),
        ({"op": "test", "path": "/a/b", "value": [1, 2, 3]}, DOCUMENT),
        ({"op": "test", "path": "/nowhere", "value": None}, DOCUMENT),
    ],
)  # fmt: skip
def test_every_operation_does_its_work(operation, result):
    """[A7]"""
    before = copy_of(DOCUMENT)
    assert json_patch(DOCUMENT, [operation]) == result
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/b/4", "value": 1},
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/c~1d/x"},
        {"op": "replace", "path": "/a/b/-", "value": 1},
        {"op": "move", "from": "/a", "path": "/a/x"},
        {"op": "copy", "path": "/y"},
        {"op": "test", "path": "/a/b/0", "value": True},
        {"op": "test", "path": "/a", "value": {"b": [1, 2]}},
        {"op": "paint", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": "", "value": 1},
        {"op": "replace", "path": ""},
        {"op": "test", "path": "/a/b/9", "value": None},
        {"op": "move", "from": "/x", "path": "/y"},
        {"path": "/x", "value": 1},
        None,
    ],
)
def test_what_does_not_apply_is_invalid(operation):
    with pytest.raises(Invalid) as caught:
        json_patch(DOCUMENT, [operation])
    assert caught.value.message == (
        "the server rejected our request due to an error in our request"
    )


def test_null_is_a_patch_without_operations():
    """Go's nil slice: what a webhook answers that has nothing to change."""
    assert json_patch(DOCUMENT, None) == DOCUMENT
    assert json_patch(DOCUMENT, read_operations(b"null")) == DOCUMENT


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'[{"op":"test","path":"/n","value":1.50}]', 1.5),
        (b'[{"op":"test","path":"/n","value":1e0}]', 1),
        (b'[{"op":"test","path":"/n","value":"\\u0041"}]', "A"),
        (b'[{"op":"test","path":"/n","value":"<"}]', "<"),
    ],
)
def test_a_test_compares_texts(body, value):
    with pytest.raises(Invalid):
        json_patch({"n": value}, read_operations(body))


def test_what_an_operation_brought_is_tested_as_it_was_written():
    body = (
        b'[{"op":"add","path":"/n","value":[1.50,"\\u0041",null]},'
        b'{"op":"test","path":"/n/0","value":1.50}]'
    )
    assert json_patch({}, read_operations(body)) == {"n": [1.5, "A", None]}
    assert json_patch({"n": "<"}, read_operations(b'[{"op":"test","path":"/n","value":"\\u003c"}]'))


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "replace", "path": "/x/y", "value": 1},
         "replace operation does not apply: doc is missing path: /x/y: missing value"),
        ({"op": "remove", "path": "/x"},
         "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value"),
        ({"op": "add", "path": "/a/b/9", "value": 1},
         "error in add for path: '/a/b/9': Unable to access invalid index: 9: invalid index "
         "referenced"),
        ({"op": "test", "path": "/a", "value": 1}, "testing value /a failed: test failed"),
        ({"op": "paint", "path": "/a"}, "Unexpected kind: paint"),
    ],
)  # fmt: skip
def test_why_it_does_not_apply_is_said_in_the_librarys_words(operation, why):
    """Callers of webhooks and of `kubectl patch --local` see them."""
    with pytest.raises(Invalid) as caught:
        json_patch(DOCUMENT, [operation])
    assert str(caught.value.__cause__) == why


def test_what_is_no_patch_is_a_bad_request():
    with pytest.raises(BadRequest):
        json_patch({}, {"op": "add"})
    with pytest.raises(RequestEntityTooLarge):
        json_patch({}, [{"op": "test", "path": ""}] * 10_001)


def test_copies_that_double_are_stopped_at_the_limit_of_a_request():
    """22 operations once made 4 GiB of a kilobyte."""
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(40)]
    with pytest.raises(Invalid) as caught:
        json_patch({"a": {"text": "x" * 1000}}, doubling)
    assert "size increase of copy" in str(caught.value.__cause__)
    whole = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(40)]
    with pytest.raises(Invalid):
        json_patch({"a": "x"}, whole)


def test_a_document_does_not_become_endlessly_deep():
    path, steps = "", []
    for _ in range(300):
        path += "/a"
        steps.append({"op": "add", "path": path, "value": {}})
    with pytest.raises(Invalid) as caught:
        json_patch({}, steps)
    assert "levels deep" in str(caught.value.__cause__)


@given(st.lists(st.integers(), max_size=6), st.data())
def test_an_item_that_was_added_is_removed_again(items, data):
    at = data.draw(st.integers(0, len(items)))
    added = [{"op": "add", "path": f"/items/{at}", "value": "new"}]
    removed = [{"op": "remove", "path": f"/items/{at}"}]
    assert json_patch({"items": items}, added + removed) == {"items": items}

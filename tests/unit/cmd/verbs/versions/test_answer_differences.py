import pytest

from sampan.cmd.verbs.versions.answer_differences import Difference, differences
from sampan.cmd.verbs.versions.version_answers import Answer

UNKNOWN = Answer(404, {}, "", ())
REFUSED = Answer(422, {}, "no", ())


def taken(obj, *warnings):
    return Answer(201, obj, "", warnings)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (taken({}), UNKNOWN, [Difference("removed", "")]),
        (UNKNOWN, taken({}), [Difference("added", "")]),
        (taken({}), REFUSED, [Difference("refused", "no")]),
        (REFUSED, taken({}), [Difference("accepted", "no")]),
        (REFUSED, REFUSED, []),
        (UNKNOWN, UNKNOWN, []),
        (taken({}, "a"), taken({}, "a", "b"), [Difference("warning", "b")]),
        (taken({}, "a"), taken({}), []),
    ],
)
def test_what_its_owner_should_know(old, new, wanted):
    """[V4]"""
    assert differences(old, new) == wanted


def test_another_default_has_its_place():
    """[V4]"""
    old = {"spec": {"a": 1, "list": [{"x": 1}]}, "metadata": {"uid": "1"}, "status": {"s": 1}}
    new = {"spec": {"b": {}, "list": [{"x": 2}]}, "metadata": {"uid": "2"}}
    assert differences(taken(old), taken(new)) == [
        Difference("default", "1 → none", "spec.a"),
        Difference("default", "none → {}", "spec.b"),
        Difference("default", "1 → 2", "spec.list[0].x"),
    ]


def test_a_name_that_is_made_up_is_no_difference():
    old = {"metadata": {"generateName": "a-", "name": "a-1"}}
    new = {"metadata": {"generateName": "a-", "name": "a-2"}}
    assert differences(taken(old), taken(new)) == []

import pytest

from sampan.scheduler.model.node_terms import Requirement, holds, matches, term_of


@pytest.mark.parametrize(
    ("operator", "values", "value", "expected"),
    [
        ("In", ("a", "b"), "a", True),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), None, True),
        ("NotIn", ("a",), "a", False),
        ("Exists", (), "", True),
        ("DoesNotExist", (), None, True),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Lt", ("5",), "-6", True),
        ("Gt", ("5",), "many", False),
        ("Gt", ("few",), "5", False),
        ("Gt", ("5",), None, False),
        ("Gt", ("1", "2"), "5", False),
        ("Gt", ("5",), "9" * 30, False),
        ("Gt", ("5",), "１２", False),
        ("Like", ("a",), "a", False),
    ],
)
def test_operators(operator, values, value, expected):
    assert holds(Requirement("k", operator, values), value) is expected


def test_an_empty_term_matches_nothing():
    assert not matches(term_of({}), "node", {})
    assert not matches(term_of({"matchExpressions": [], "matchFields": None}), "node", {})


def test_a_field_other_than_the_name_is_absent():
    requirement = {"key": "spec.x", "operator": "In", "values": ["a"]}
    assert not matches(term_of({"matchFields": [requirement]}), "a", {})

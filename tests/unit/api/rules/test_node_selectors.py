import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.node_selectors import (
    Alternatives,
    Requirement,
    Requirements,
    Term,
    any_matches,
    holds,
    matches,
    may_run_on,
    term_of,
)
from tests.support.processor_time import quickest_seconds


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


def test_any_term_will_do_and_all_of_its_requirements_must_hold():
    labels = {"cpu": "8"}
    more = {"matchExpressions": [{"key": "cpu", "operator": "Gt", "values": ["4"]}]}
    less = {"matchExpressions": [{"key": "cpu", "operator": "Lt", "values": ["4"]}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}

    def found(*terms):
        return any_matches([term_of(term) for term in terms], "n1", labels)

    assert found(less, more)
    assert found(named)
    assert found({}, named)
    assert not found(less)
    assert not found({**named, **less})
    assert not found()


def test_a_pod_may_run_by_selector_and_required_affinity():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["9"]}]}

    def may_run(cores="8", **spec):
        return may_run_on({"spec": spec}, "n1", {"disk": "ssd", "cores": cores})

    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}
    assert may_run()
    assert may_run(nodeSelector={"disk": "ssd"})
    assert not may_run(nodeSelector={"disk": "hdd"})
    assert not may_run(affinity=affinity)
    assert may_run(affinity=affinity, cores="10")
    assert not may_run(affinity=affinity, cores="10", nodeSelector={"disk": "hdd"})
    assert not may_run(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": []}}})


VALUES = st.sampled_from(["1", "2", "x", ""])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
REQUIREMENTS = st.builds(
    lambda key, operator, values: Requirement(key, operator, tuple(values)),
    st.sampled_from("abcd"), OPERATORS, st.lists(VALUES, max_size=12),
)  # fmt: skip


@given(st.lists(REQUIREMENTS, max_size=20), st.dictionaries(st.sampled_from("abcd"), VALUES))
def test_many_requirements_hold_where_each_of_them_does(those, labels):
    each = all(holds(item, labels.get(item.key)) for item in those)
    assert Requirements(those).hold(labels) is each


TERMS = st.builds(
    lambda those, names: Term(
        Requirements(those),
        Requirements([Requirement("metadata.name", "In", tuple(names))] if names else []),
    ),
    st.lists(REQUIREMENTS, max_size=3), st.lists(VALUES, max_size=2),
)  # fmt: skip


@given(
    st.lists(TERMS, max_size=6), VALUES,
    st.dictionaries(st.sampled_from(["a", "b", "metadata.name"]), VALUES),
)  # fmt: skip
def test_alternatives_match_where_one_of_the_terms_does(terms, name, labels):
    assert Alternatives(terms).any_matches(name, labels) is any_matches(terms, name, labels)


def test_many_requirements_cost_by_the_labels():
    many = Requirements(Requirement(f"k{n}", "NotIn", ("v",)) for n in range(20_000))
    wide = Requirements([Requirement("k", "NotIn", tuple(f"v{n}" for n in range(100_000)))])
    assert many.hold({"k": "v"})  # merged once
    assert wide.hold({"k": "v"})

    def looked_at():
        for number in range(2_000):
            assert many.hold({"a": "b", "c": str(number)})
            assert not wide.hold({"k": f"v{number}"})
            hash(many)

    assert quickest_seconds(looked_at) < 0.1

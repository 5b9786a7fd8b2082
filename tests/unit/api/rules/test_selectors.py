"""Selectors as text and as objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules import selectors
from sampan.api.rules.labels import questions
from sampan.api.rules.labels.questions import Requirement
from sampan.api.rules.selectors import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    LabelSelector,
    SelectorError,
    from_object,
    match_labels,
    parse_field_selector,
    parse_label_selector,
)
from tests.growth.line_counts import Counts, counted
from tests.support.processor_time import quickest_seconds

LABELS = {"a": "1", "tier": "web", "example.com/x": "", "n": "7"}


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("", True), ("a=1", True), ("a==1", True), ("a = 1", True), ("a=2", False), ("b=1", False),
        ("a!=1", False), ("a!=2", True), ("b!=1", True), ("a", True), ("b", False), ("!b", True),
        ("!a", False), ("a in (1,2)", True), ("a in (3)", False), ("b in (1)", False),
        ("a notin (1)", False), ("b notin (1)", True), ("n>5", True), ("n>7", False),
        ("n<8", True), ("tier>1", False), ("z>1", False), ("a=1,tier=web,!b", True),
        ("a=1,tier=db", False), ("example.com/x=", True), ("example.com/x", True),
        ("a in (1),tier notin (db,cache)", True), ("in=1", False), ("a=in", False),
    ],
)  # fmt: skip
def test_text_selects(text, hit):
    """[A7]"""
    assert parse_label_selector(text).matches(LABELS) is hit


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b,,", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("n>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
                "operators, the value must be an integer"),
    ],
)  # fmt: skip
def test_what_is_no_selector_is_refused_in_upstreams_words(text, why):
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert str(caught.value) == why


@pytest.mark.parametrize("text", ["a/b/c=d", "-a=b", "a=b_", "a=" + "x" * 64])
def test_keys_and_values_must_be_valid_labels(text):
    with pytest.raises(SelectorError, match="Invalid value"):
        parse_label_selector(text)


def test_label_selector_objects():
    selector = from_object({
        "matchLabels": {"a": "1"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["web", "db"]},
            {"key": "b", "operator": "DoesNotExist"},
            {"key": "n", "operator": "Exists"},
            {"key": "b", "operator": "NotIn", "values": ["x"]},
        ],
    })  # fmt: skip
    assert selector.matches(LABELS)
    assert not selector.matches({**LABELS, "b": "y"})
    assert from_object(None) is NOTHING
    assert not NOTHING.matches({})
    assert from_object({}) == EVERYTHING
    assert match_labels({"a": "1"}).matches(LABELS)
    with pytest.raises(SelectorError, match='"Gt" is not a valid label selector operator'):
        from_object({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})
    with pytest.raises(SelectorError, match="values set can't be empty"):
        from_object({"matchExpressions": [{"key": "a", "operator": "In"}]})


def test_field_selectors():
    found = parse_field_selector(r"metadata.name=a\,b\=c,status.phase!=Running,spec.x==")
    assert found == [
        FieldRequirement("metadata.name", True, "a,b=c"),
        FieldRequirement("status.phase", False, "Running"),
        FieldRequirement("spec.x", True, ""),
    ]
    assert parse_field_selector("") == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=\\b", "invalid field selector: invalid escape sequence: \\b"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_bad_field_selectors_are_refused(text, why):
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert str(caught.value) == why


KEYS = st.sampled_from(["a", "b", "example.com/c"])
MANY_KEYS = st.integers(0, 50).map("k{}".format)
VALUES = st.sampled_from(["", "1", "5", "x", "in"])
NUMBERS = st.sampled_from(["3", "10"])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["=", "==", "!="]), st.tuples(VALUES)),
    st.builds(
        Requirement, KEYS, st.sampled_from(["in", "notin"]),
        st.lists(VALUES, min_size=1, max_size=3, unique=True).map(tuple),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"])),
    st.builds(Requirement, KEYS, st.sampled_from(["gt", "lt"]), st.tuples(NUMBERS)),
)  # fmt: skip


@given(st.lists(REQUIREMENTS, max_size=4), st.dictionaries(KEYS, VALUES))
def test_a_selector_printed_and_parsed_asks_the_same(requirements, labels):
    selector = LabelSelector(tuple(requirements))
    again = parse_label_selector(str(selector))
    assert again.matches(labels) == selector.matches(labels)
    assert str(again) == str(selector)


@given(st.lists(REQUIREMENTS, min_size=questions.MANY + 1), st.dictionaries(KEYS, VALUES))
def test_many_requirements_ask_what_each_of_them_asks(requirements, labels):
    each = [LabelSelector((requirement,)).matches(labels) for requirement in requirements]
    selector = LabelSelector(tuple(requirements))
    # Asked once it looks at one after the other; asked again it has put them together.
    assert [selector.matches(labels) for _ in range(2)] == [all(each)] * 2


@given(st.dictionaries(MANY_KEYS, VALUES, min_size=questions.MANY + 1), st.data())
def test_a_map_of_many_labels_is_met_by_who_has_them_all(wanted, data):
    selector = selectors.match_labels(wanted)
    for _ in range(2):
        assert selector.matches({**wanted, "more": "v"})
    changed = data.draw(st.sampled_from(sorted(wanted)))
    assert not selector.matches({key: wanted[key] for key in wanted if key != changed})
    assert not selector.matches({**wanted, changed: f"{wanted[changed]}x"})


@given(REQUIREMENTS, st.dictionaries(KEYS, VALUES))
def test_not_in_and_absent_are_the_opposites(requirement, labels):
    opposite = {"in": "notin", "exists": "!", "=": "!="}.get(requirement.operator)
    if opposite is None:
        return
    other = Requirement(requirement.key, opposite, requirement.values)
    one = LabelSelector((requirement,)).matches(labels)
    assert LabelSelector((other,)).matches(labels) is not one


@given(st.lists(REQUIREMENTS), st.dictionaries(KEYS, VALUES))
def test_what_is_stored_asks_what_was_checked(requirements, labels):
    written = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
    found = {
        "matchExpressions": [
            {"key": one.key, "operator": written[one.operator], "values": list(one.values)}
            for one in requirements
            if one.operator in written
        ]
    }
    assert selectors.from_stored(found) == from_object(found)
    assert selectors.from_stored(found).matches(labels) == from_object(found).matches(labels)
    assert selectors.from_stored(None) is NOTHING


def test_what_is_stored_is_not_checked_once_more():
    """15,000 expressions are read within a few milliseconds: each is one step."""
    wanted = {"matchExpressions": [
        {"key": f"k{n}", "operator": "NotIn", "values": ["v"]} for n in range(15_000)
    ]}  # fmt: skip
    counts: Counts = Counts()
    with counted(counts):
        assert selectors.from_stored(wanted).matches({"a": "b"})
    assert sum(counts.values()) < 30 * 15_000


def test_an_open_parenthesis_says_what_may_follow():
    with pytest.raises(SelectorError, match=r"found '', expected: ',', '\)' or identifier"):
        parse_label_selector("a in (")


def test_thousands_of_values_are_looked_at_and_not_written_down():
    """a controller reads the selector of its object at each turn"""
    values = [f"value-{at}" for at in range(50_000)]
    expression = {"key": "k", "operator": "NotIn", "values": values}
    wanted = {"matchExpressions": [expression]}
    assert quickest_seconds(lambda: selectors.from_object(wanted)) < 0.08
    assert not selectors.from_object(wanted).matches({"k": "value-7"})
    expression["values"] = [*values, "-"]
    with pytest.raises(SelectorError, match=r'values\[50000\]\[k\]: Invalid value: "-"'):
        selectors.from_object({"matchExpressions": [expression]})

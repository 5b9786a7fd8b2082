"""cli/printers/yaml_text.py: YAML as the Go libraries write it, and as any YAML reader reads it."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sampan.cli.printers.yaml_text import to_yaml

TEXTS = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\x85\u2028\u2029\ufeff")
).filter(lambda text: text != "=")  # plain, as kubectl writes it; PyYAML alone cannot read that
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read_back(value):
    assert yaml.safe_load(to_yaml({"v": value})) == {"v": value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("true", '"true"'), ("y", '"y"'), ("123", '"123"'), ("1e3", '"1e3"'), ("", '""'),
        ("0x1f", '"0x1f"'), ("1:30", '"1:30"'), ("2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"'),
        ("x: y", "'x: y'"), ("- x", "'- x'"), ("*", "'*'"), ("@daily", "'@daily'"), ("#c", "'#c'"),
        ("a b,c", "a b,c"), ("é", "é"), ("\ttab", '"\\ttab"'), ("$(A)", "$(A)"), ("50%", "50%"),
        ("10.0.0.1", "10.0.0.1"), ("1.27", '"1.27"'), ("-c", "-c"), ("500m", "500m"),
    ],
)  # fmt: skip
def test_strings_are_quoted_as_go_does(value, text):
    """[C5]"""
    assert to_yaml({"a": value}) == f"a: {text}\n"


def test_lines_become_a_block_unless_one_ends_in_a_space():
    assert to_yaml({"a": "x\ny\n"}) == "a: |\n  x\n  y\n"
    assert to_yaml({"a": "x\n\ny"}) == "a: |-\n  x\n\n  y\n"
    assert to_yaml({"a": "x \ny\n"}) == 'a: "x \\ny\\n"\n'


def test_keys_are_sorted_as_people_count():
    assert to_yaml({"a10": 1, "a2": 2, "B": 3}) == "B: 3\na2: 2\na10: 1\n"


def test_lists_are_not_indented_and_long_text_is_folded():
    text = to_yaml({"a": [{"b": " ".join(["word"] * 30)}]})
    first, second, *_ = text.splitlines()[1:]
    assert text.startswith("a:\n- b: word word")
    assert len(first) >= 80
    assert second.startswith("    word")

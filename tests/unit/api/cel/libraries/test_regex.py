"""Patterns as RE2 reads them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.cel.language import cost
from sampan.api.cel.language.cost import PER_CALL
from sampan.api.cel.libraries.regex import NotRegex, compile_pattern, find_all_cost, match_cost


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a$", "a\n", False), ("(?m)^a$", "a\nb", True), ("a\\z", "a", True), ("\\d+", "٣", False),
        ("[[:alpha:]]+", "abc", True), ("[[:digit:]]", "a", False), ("[^[:space:]]", " ", False),
        ("\\Qa.b\\E", "a.b", True), ("\\Qa.b\\E", "axb", False), ("(?i)ABC", "abc", True),
        ("(?P<n>a)b", "ab", True), ("(?<n>a)b", "ab", True), ("\\pL", "a", True),
        ("[\\p{N}]", "5", True),
        ("\\x{41}", "A", True), ("[]a]", "]", True), ("[^]a]", "b", True), ("[a&&b]", "&", True),
        ("a{2,3}", "aa", True), ("(?:a|b)c", "bc", True), ("[$]", "$", True),
    ],
)  # fmt: skip
def test_a_pattern_means_what_it_means_in_re2(pattern, text, expected):
    assert (compile_pattern(pattern).matches(text)) is expected


@pytest.mark.parametrize(
    "pattern", ["(", "a**", "(?=a)", "(?!a)", "(?<=a)b", "(a)\\1", "[b-a]", "\\q", "[[:nope:]]"]
)
def test_what_re2_has_not_is_refused(pattern):
    with pytest.raises(NotRegex):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("\\q", "invalid escape sequence: `\\q`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("((a{100}){100}){100}", "invalid repeat count: `{100}`"),
        ("\\pL{300}[\\pN\\pL]{300}x", "expression too large"),
        ("a" * 100_000, "expression too large"),
    ],
)
def test_a_refusal_says_what_gos_says(pattern, why):
    with pytest.raises(NotRegex) as found:
        compile_pattern(pattern)
    assert str(found.value).startswith(f"error parsing regexp: {why}")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a+?", "aaa", ["a", "a", "a"]), ("a*", "baac", ["", "aa", ""]), ("a|ab", "ab", ["a"]),
        ("ab|a", "ab", ["ab"]), ("\\b\\w", "ab cd", ["a", "c"]), ("(?m)^.", "a\nb", ["a", "b"]),
        ("x*", "", [""]), ("(?U)a+", "aa", ["a", "a"]), ("a{2}", "aaaaa", ["aa", "aa"]),
    ],
)  # fmt: skip
def test_everything_that_fits_is_found_in_order(pattern, text, found):
    assert list(compile_pattern(pattern).find_all(text)) == found


@pytest.mark.parametrize(
    "pattern", ["^([a-z0-9]+-?)+$", "(a*)*b", "(a|aa)+$", ".*.*.*x", "(?:a?){50}a{50}b"]
)
def test_no_text_makes_a_pattern_run_for_ever(pattern):
    """An attack: texts at which a machine that tries one way after the other never ends."""
    text = "a" * 5000 + "!"
    assert compile_pattern(pattern).matches(text) is False
    assert compile_pattern(pattern).find(text) is None


def test_a_pattern_that_unfolds_is_charged_for_what_it_unfolds_to():
    """26 characters become 16 000 steps, which take a second for 20 000 letters."""
    text = "q" * 20_000
    unfolded = match_cost(text, ".{1,900}(foo|bar).{1,900}z")
    assert unfolded > PER_CALL
    assert match_cost("my-app-1", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$") < 20
    assert find_all_cost(text, "a") > match_cost(text, "a")
    assert match_cost(text, "(") == cost.match_cost(text, "(")  # the evaluation will say why


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\w", "^", "$", "\\b", "a|b", "ab", "\\n"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(
            st.sampled_from(["a", "b", "(?:ab)", "(?:a|bb)", "[ab]"]),
            st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?"]),
        ).map("".join),
        inner.map(lambda one: f"(?:{one})"),
        inner.map(lambda one: f"({one})c?"),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(PATTERNS, st.lists(st.text("abc\n ", max_size=8), min_size=1, max_size=4))
def test_it_finds_what_pythons_machine_finds(pattern, texts):
    """`$` of RE2 is Python's \\Z."""
    known = re.compile(pattern.replace("$", "\\Z"), re.ASCII)
    regex = compile_pattern(pattern)
    for text in texts:
        found = known.search(text)
        assert regex.matches(text) is (found is not None)
        assert regex.find(text) == (None if found is None else found.span())

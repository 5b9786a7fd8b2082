"""Patterns as RE2 reads them."""

import pytest

from sampan.api.cel.regex import NotRegex, compiled


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
    assert (compiled(pattern).search(text) is not None) is expected


@pytest.mark.parametrize(
    "pattern", ["(", "a**", "(?=a)", "(?!a)", "(?<=a)b", "(a)\\1", "[b-a]", "\\q", "[[:nope:]]"]
)
def test_what_re2_has_not_is_refused(pattern):
    with pytest.raises(NotRegex):
        compiled(pattern)

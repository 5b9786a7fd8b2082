"""The forms that names may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules import names

RULES = [
    names.dns_label, names.dns_subdomain, names.dns_1035_label, names.wildcard_subdomain,
    names.qualified_name, names.label_value, names.env_name, names.config_key,
    names.header_name, names.percent, names.port_name, names.path_segment, names.http_path,
]  # fmt: skip


@given(st.sampled_from(RULES), st.text(max_size=80) | st.from_regex(r"[a-z0-9.\-/]{0,300}"))
def test_every_rule_has_an_answer_for_every_text(rule, text):
    assert all(isinstance(wrong, str) and wrong for wrong in rule(text))


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True))
def test_a_label_is_also_a_subdomain_a_key_and_a_label_value(text):
    for rule in (names.dns_label, names.dns_subdomain, names.qualified_name, names.label_value):
        assert rule(text) == ()


@pytest.mark.parametrize("text", ["a\n", "\na", "a b", "", "-a", "a-", "A"])
def test_a_label_that_is_none_is_told_so(text):
    assert names.dns_label(text)


def test_lengths_are_counted_in_bytes():
    assert names.size_of("é") == 2
    assert names.label_value("é" * 32)[0] == "must be no more than 63 bytes"
    assert names.dns_label("a" * 64) == ("must be no more than 63 characters",)
    assert names.dns_1035_label("a" * 64) == ("must be no more than 63 characters",)


def test_a_long_subdomain_is_too_long():
    assert names.dns_subdomain("a" * 254) == ("must be no more than 253 characters",)


def test_the_prefix_of_a_qualified_name_is_a_subdomain():
    assert names.qualified_name("example.com/a") == ()
    assert names.qualified_name("Example.com/a")[0].startswith("prefix part a lowercase")
    assert names.qualified_name("example.com/")[0] == "name part must be non-empty"


def test_a_generated_name_may_end_in_a_dash():
    assert names.as_generated(names.dns_label, "web-") == ()
    assert names.as_generated(names.dns_label, "Web-")
    assert names.as_generated(names.dns_label, "-")


def test_examples_in_complaints_are_joined_as_upstream_joins_them():
    found = names.regex_complaint("wrong", "[a]", "a", "b")
    assert found == "wrong (e.g. 'a',  or 'b', regex used for validation is '[a]')"
    assert names.regex_complaint("wrong", "[a]") == "wrong (regex used for validation is '[a]')"


@pytest.mark.parametrize(("number", "good"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_a_port_is_between_1_and_65535(number, good):
    assert (names.port_number(number) == ()) is good


@given(st.lists(st.from_regex(r"[a-zA-Z0-9é._\-\n]{0,70}", fullmatch=True), max_size=5))
def test_many_label_values_are_good_where_each_of_them_is(values):
    assert names.are_label_values(values) == (not any(map(names.label_value, values)))

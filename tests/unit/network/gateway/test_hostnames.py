"""Hostnames of listeners and routes, as the specification gives them."""

import pytest

from sampan.network.gateway.hostnames import in_common, names_of


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("", "", ""),
        ("", "a.com", "a.com"),
        ("test.example.com", "", "test.example.com"),
        ("test.example.com", "*.example.com", "test.example.com"),
        ("*.example.com", "foo.test.example.com", "foo.test.example.com"),
        ("*.example.com", "*.test.example.com", "*.test.example.com"),
        ("*.example.com", "*.example.com", "*.example.com"),
        ("*.example.com", "example.com", None),
        ("*.example.com", "test.example.net", None),
        ("*.example.com", "notexample.com", None),
        ("a.com", "b.com", None),
    ],
)
def test_what_two_have_in_common(one, other, both):
    assert in_common(one, other) == both
    assert in_common(other, one) == both


def test_the_narrowest_hostname_of_a_host_comes_first():
    assert list(names_of("a.b.com")) == ["a.b.com", "*.b.com", "*.com", ""]
    assert list(names_of("localhost")) == ["localhost", ""]
    assert list(names_of("")) == [""]


def test_a_host_of_many_labels_costs_little():
    assert len(list(names_of("a." * 16_000))) == 2

"""apiserver/aggregation/identity_headers.py: one line each, and nothing from the caller."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.aggregation.identity_headers import identity_headers, public_headers
from sampan.apiserver.authn.user import User


def test_a_user_in_full():
    user = User("eve", ("dev", "a,b"), "7", {"example.com/scopes": ("x", "y")})
    assert identity_headers(user) == [
        ("x-remote-user", "eve"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "dev"),
        ("x-remote-group", "a,b"),
        ("x-remote-extra-example.com%2Fscopes", "x"),
        ("x-remote-extra-example.com%2Fscopes", "y"),
    ]


@given(st.text(min_size=1))
def test_any_key_is_a_header_and_can_be_read_back(key):
    [_, (name, _)] = identity_headers(User("eve", extra={key: ("x",)}))
    assert name.isascii()
    assert not set(name) & set(' :\r\n,;()<>@/[]?={}"\\')
    assert unquote(name.removeprefix("x-remote-extra-")) == key


def test_what_says_who_somebody_is_does_not_travel_on():
    sent = {
        "authorization": "Bearer x", "x-remote-user": "root", "x-remote-group": "a",
        "x-remote-uid": "1", "x-remote-extra-a": "b", "impersonate-user": "x", "accept": "*/*",
    }  # fmt: skip
    assert public_headers(sent) == {"accept": "*/*"}

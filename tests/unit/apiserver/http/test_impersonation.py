import pytest

from sampan.api.errors import BadRequest
from sampan.apiserver.authn.user import User
from sampan.apiserver.http.impersonation import impersonated_user, is_asked, required_access
from sampan.core.http.messages import Request

ADMIN = User("admin", ("system:masters",))


def request(headers, **repeated):
    lines = {name.replace("_", "-"): values for name, values in repeated.items()}
    joined = {name: ", ".join(values) for name, values in lines.items()}
    return Request("GET", "/", "", {**headers, **joined}, repeated=lines)


def test_headers_name_somebody_else():
    named = {"impersonate-user": "jane", "impersonate-extra-scopes": "read"}
    headers = request(named, impersonate_group=["dev", "ops"])
    assert is_asked(headers.headers)
    user = impersonated_user(headers)
    assert user.name == "jane"
    assert user.groups == ("dev", "ops", "system:authenticated")
    assert user.extra == {"scopes": ("read",)}
    asked = [(one.resource, one.subresource, one.name) for one in required_access(ADMIN, headers)]
    assert asked == [
        ("users", "", "jane"),
        ("groups", "", "dev"),
        ("groups", "", "ops"),
        ("userextras", "scopes", "read"),
    ]


def test_a_comma_makes_no_second_group():
    """An attack: may impersonate the group `dev,system:masters`, of which there is none."""
    headers = request({
        "impersonate-user": "jane",
        "impersonate-group": "dev,system:masters",
        "impersonate-extra-a": "b,c",
    })  # fmt: skip
    user = impersonated_user(headers)
    assert user.groups == ("dev,system:masters", "system:authenticated")
    assert user.extra == {"a": ("b,c",)}
    assert [one.name for one in required_access(ADMIN, headers) if one.resource == "groups"] == [
        "dev,system:masters"
    ]


@pytest.mark.parametrize("header", ["impersonate_user", "impersonate_uid"])
def test_nobody_is_two_people(header):
    named = {"impersonate-user": "jane", "impersonate-uid": "1"}
    with pytest.raises(BadRequest, match="more than one user"):
        impersonated_user(request(named, **{header: ["jane", "admin"]}))


def test_a_service_account_brings_its_groups():
    headers = request({"impersonate-user": "system:serviceaccount:team:bot"})
    assert "system:serviceaccounts:team" in impersonated_user(headers).groups
    (asked,) = required_access(ADMIN, headers)
    assert (asked.resource, asked.namespace, asked.name) == ("serviceaccounts", "team", "bot")


def test_groups_alone_are_nobody():
    assert is_asked({"impersonate-group": "x"})
    assert not is_asked({"accept": "x"})
    with pytest.raises(BadRequest):
        impersonated_user(request({"impersonate-group": "x"}))

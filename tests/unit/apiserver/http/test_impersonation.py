import pytest

from sampan.api.errors import BadRequest
from sampan.apiserver.authn.user import User
from sampan.apiserver.http.impersonation import impersonated, is_asked, required

ADMIN = User("admin", ("system:masters",))


def test_headers_name_somebody_else():
    headers = {
        "impersonate-user": "jane",
        "impersonate-group": "dev, ops",
        "impersonate-extra-scopes": "read",
    }
    assert is_asked(headers)
    user = impersonated(headers)
    assert user.name == "jane"
    assert user.groups == ("dev", "ops", "system:authenticated")
    assert user.extra == {"scopes": ("read",)}
    asked = [(one.resource, one.subresource, one.name) for one in required(ADMIN, headers)]
    assert asked == [
        ("users", "", "jane"),
        ("groups", "", "dev"),
        ("groups", "", "ops"),
        ("userextras", "scopes", "read"),
    ]


def test_a_service_account_brings_its_groups():
    headers = {"impersonate-user": "system:serviceaccount:team:bot"}
    assert "system:serviceaccounts:team" in impersonated(headers).groups
    (asked,) = required(ADMIN, headers)
    assert (asked.resource, asked.namespace, asked.name) == ("serviceaccounts", "team", "bot")


def test_groups_alone_are_nobody():
    assert is_asked({"impersonate-group": "x"})
    assert not is_asked({"accept": "x"})
    with pytest.raises(BadRequest):
        impersonated({"impersonate-group": "x"})

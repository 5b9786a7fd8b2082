"""Constrained impersonation: modes, what each takes, and who is tried first. [A1]"""

import pytest

from sampan.api.errors import Forbidden
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, refusal
from sampan.apiserver.authz.constrained_impersonation import NODE_NAME, Impersonation, modes
from sampan.core.metrics import Metrics
from tests.support import virtual_time
from tests.support.manual_clock import ManualClock

AGENT = User("system:serviceaccount:kube-system:agent", extra={NODE_NAME: ("n1",), "other": ("x",)})
BOB = User("bob")


def listing(user):
    return Attributes(user, "list", resource="pods", namespace="default")


def told(mode):
    return [
        (one.verb, one.group, one.resource, one.subresource, one.namespace, one.name)
        for check in mode.checks
        for one in check.each
    ]


def named(wanted, caller=BOB):
    return list(modes(wanted, listing(caller)))


@pytest.mark.parametrize(
    ("wanted", "caller", "expected"),
    [
        (User("jane"), BOB, ["user-info", "legacy"]),
        (User("system:node:n1"), BOB, ["arbitrary-node", "legacy"]),
        (User("system:node:n1"), AGENT, ["associated-node", "arbitrary-node", "legacy"]),
        (User("system:node:n2"), AGENT, ["arbitrary-node", "legacy"]),
        (User("system:node:n1"), User("bob", extra=AGENT.extra), ["arbitrary-node", "legacy"]),
        (User("system:node:n1", uid="7"), AGENT, ["legacy"]),
        (User("system:node:Not_A_Node"), BOB, ["user-info", "legacy"]),
        (User("system:serviceaccount:team:bot"), BOB, ["serviceaccount", "legacy"]),
        (User("system:serviceaccount:team:bot", ("dev",)), BOB, ["legacy"]),
    ],
)
def test_which_modes_apply(wanted, caller, expected):
    assert named(wanted, caller) == expected


def test_a_node_is_asked_for_as_any_node_by_who_is_on_it():
    mode = modes(User("system:node:n1"), listing(AGENT))["associated-node"]
    assert told(mode) == [
        ("impersonate-on:associated-node:list", "", "pods", "", "default", ""),
        ("impersonate:associated-node", "authentication.k8s.io", "nodes", "", "", "*"),
    ]
    (about,) = {id(one.user): one.user for check in mode.checks for one in check.each}.values()
    assert about.extra == {
        "authentication.kubernetes.io/associated-node-keys": (NODE_NAME, "other")
    }
    assert mode.user == User("system:node:n1", ("system:nodes", "system:authenticated"))


def test_a_user_is_asked_for_part_by_part():
    wanted = User("jane", ("dev",), "7", {"acme.io/scopes": ("view", "edit")})
    mode = modes(wanted, listing(BOB))["user-info"]
    where = ("impersonate:user-info", "authentication.k8s.io")
    assert told(mode) == [
        ("impersonate-on:user-info:list", "", "pods", "", "default", ""),
        (*where, "users", "", "", "jane"),
        (*where, "uids", "", "", "7"),
        (*where, "groups", "", "", "dev"),
        (*where, "userextras", "acme.io/scopes", "", "view"),
        (*where, "userextras", "acme.io/scopes", "", "edit"),
    ]
    assert mode.user.groups == ("dev", "system:authenticated")
    assert mode.constraint == "impersonate:user-info"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (User("jane", ("",)), "impersonating the empty string group is not allowed"),
        (User("jane", ("system:masters",)), "impersonating the system:masters group is not"),
        (User("jane", extra={"scopes": ("a",)}), 'key in extra is not allowed: extra.key: Invalid '
         'value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")'),
        (User("jane", extra={"a.io/B": ("a",)}), 'non-lowercase key in extra is not allowed: '
         '"a.io/B"'),
        (User("jane", extra={"a.io/b": ("",)}), "the empty string value in extra is not allowed"),
    ],
)  # fmt: skip
def test_what_only_legacy_impersonation_gives(wanted, why):
    found = modes(wanted, listing(BOB))
    assert any(why in check.never for check in found["user-info"].checks)
    assert not any(check.never for check in found["legacy"].checks)


def asking(allows):
    """Whom the authorizers would let do what `allows` says."""
    seen = []

    async def authorize(attributes):
        seen.append((attributes.verb, attributes.resource, attributes.name))
        if not allows(attributes):
            raise refusal(attributes, "")

    return Impersonation(authorize, Metrics(), ManualClock()), seen


def test_the_first_refusal_is_told_and_the_mode_that_worked_is_tried_first():
    async def main():
        may, seen = asking(lambda one: one.verb == "impersonate" and one.name == "jane")
        with pytest.raises(Forbidden, match=r"pods is forbidden: User \"bob\" cannot "
                           "impersonate-on:user-info:list resource"):  # fmt: skip
            await may.allowed(User("carol"), listing(BOB))
        for _ in range(2):
            mode = await may.allowed(User("jane"), listing(BOB))
            assert (mode.name, mode.constraint) == ("legacy", "")
        assert seen[-2:] == [("impersonate", "users", "jane")] * 2
        with pytest.raises(Forbidden, match=r"users \"carol\" is forbidden"):
            await may.allowed(User("carol"), listing(BOB))

    virtual_time.run(main())


def test_many_groups_are_asked_for_at_once():
    async def main():
        many = User("jane", ("a", "b", "c", "d"))
        may, seen = asking(lambda one: one.resource != "groups" or one.name == "*")
        await may.allowed(many, listing(BOB))
        assert [name for _, resource, name in seen if resource == "groups"] == ["*"]
        may, seen = asking(lambda one: one.name != "*")
        await may.allowed(many, listing(BOB))
        assert [name for _, resource, name in seen if resource == "groups"] == ["*", *"abcd"]

    virtual_time.run(main())

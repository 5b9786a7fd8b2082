import asyncio

import pytest

from sampan.api.errors import Forbidden
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Authorization, Decision, masters

BOB = User("bob", ("dev",))


def say(decision, reason=""):
    return lambda _: (decision, reason)


def test_the_first_opinion_decides():
    ask = Attributes(BOB, "get", resource="pods")
    no_opinion, allow, deny = map(say, (Decision.NO_OPINION, Decision.ALLOW, Decision.DENY))
    assert asyncio.run(Authorization([no_opinion, allow, deny]).decide(ask)) == (True, "")
    assert asyncio.run(Authorization([deny, allow]).decide(ask)) == (False, "")
    assert asyncio.run(Authorization([no_opinion]).decide(ask)) == (False, "")
    assert asyncio.run(Authorization([]).decide(ask)) == (False, "")


def test_masters_may_do_everything():
    assert masters(Attributes(User("x", ("system:masters",)), "get"))[0] is Decision.ALLOW
    assert masters(Attributes(BOB, "get"))[0] is Decision.NO_OPINION


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            Attributes(BOB, "list", "", "pods", "", "default"),
            'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the '
            'namespace "default"',
        ),
        (
            Attributes(BOB, "get", "apps", "deployments", "scale", "a", "d"),
            'deployments.apps "d" is forbidden: User "bob" cannot get resource '
            '"deployments/scale" in API group "apps" in the namespace "a"',
        ),
        (
            Attributes(BOB, "list", "", "nodes"),
            'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the '
            "cluster scope",
        ),
        (
            Attributes(BOB, "get", path="/metrics"),
            'forbidden: User "bob" cannot get path "/metrics"',
        ),
    ],
)
def test_a_refusal_says_who_may_not_do_what(asked, message):
    with pytest.raises(Forbidden) as refused:
        asyncio.run(Authorization([masters]).require(asked))
    assert refused.value.message == message


def test_reasons_are_passed_on():
    denying = Authorization([say(Decision.DENY, "because I say so")])
    with pytest.raises(Forbidden, match="because I say so"):
        asyncio.run(denying.require(Attributes(BOB, "get", resource="pods")))

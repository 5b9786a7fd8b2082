"""Aggregated cluster roles. [A2]"""

from sampan.apiserver.authz.bootstrap.objects import CLUSTER_ROLES, rbac_objects
from sampan.controllers.access.clusterrole_aggregation import (
    LOOKS_AT_ONCE,
    plan,
    rules_in_turns,
)
from sampan.controllers.actions import NOTHING

GET = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
LIST = {**GET, "verbs": ["list"]}


def role(name, rules=(), labels=None, gathers=None):
    made = {"metadata": {"name": name, "labels": labels or {}}, "rules": list(rules)}
    if gathers:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": gathers}]}
    return made


def planned(one, roles):
    return plan(one, [rule for some in rules_in_turns(one, roles) for rule in some])


def test_rules_are_gathered_by_label_in_order_of_names_each_once():
    top = role("top", gathers={"to": "top"})
    others = [
        role("b", [LIST, GET], {"to": "top"}),
        role("a", [GET], {"to": "top"}),
        role("c", [{**GET, "verbs": ["*"]}], {"to": "other"}),
        top,
    ]
    [update] = planned(top, others).actions
    assert update.obj["rules"] == [GET, LIST]
    assert planned({**top, "rules": [GET, LIST]}, others) is NOTHING


def test_a_role_does_not_gather_itself_and_one_without_a_rule_gathers_nothing():
    own = role("own", [GET], {"to": "own"}, {"to": "own"})
    [update] = planned(own, [own]).actions
    assert update.obj["rules"] == []
    assert planned(role("plain", [GET]), []) is NOTHING


def test_the_bootstrap_roles_are_already_what_they_gather():
    """At its first start a cluster has nothing to write here."""
    roles = [obj for row, obj in rbac_objects() if row is CLUSTER_ROLES]
    for one in roles:
        assert planned(one, roles) is NOTHING, one["metadata"]["name"]


def test_thousands_of_selectors_look_at_every_role_in_turns():
    selectors = [
        {"matchExpressions": [{"key": f"k{number}", "operator": "Exists"}]}
        for number in range(1000)
    ]
    top = {**role("top"), "aggregationRule": {"clusterRoleSelectors": selectors}}
    others = [role(f"r{number:02d}", [GET], {"a": "b"}) for number in range(50)]
    last = role("z", [LIST], {"k999": ""})
    turns = list(rules_in_turns(top, [*others, last, top]))
    assert len(turns) > 1000 * 50 // LOOKS_AT_ONCE
    assert [rule for some in turns for rule in some] == [LIST]

from sampan.controllers.actions import NOTHING
from sampan.controllers.cluster.small_statuses import (
    CIDR_FINALIZER,
    checker,
    is_checked,
    plan_cidr,
    plan_policy,
)


def cidr(name="kubernetes", *finalizers, deleted=False, network="10.96.0.0/12"):
    meta = {"name": name, "uid": name, "finalizers": list(finalizers)}
    if deleted:
        meta["deletionTimestamp"] = "now"
    return {"metadata": meta, "spec": {"cidrs": [network]}}


def test_a_policy_that_was_seen_says_so():
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 3}}
    assert not is_checked(policy)
    [patch] = plan_policy(policy, []).actions
    assert patch.patch["status"]["observedGeneration"] == 3
    seen = {**policy, "status": {"observedGeneration": 3, "typeChecking": {}}}
    assert is_checked(seen)
    assert plan_policy(seen, []) == NOTHING


def test_expressions_that_do_not_fit_their_kinds_are_named_in_the_status():
    """[A3]"""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
    policy = {
        "metadata": {"name": "p", "generation": 1},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": "many", "expression": "object.spec.replicas > 5"}],
            "validations": [
                {"expression": "variables.many"},
                {"expression": "object.spec.replicsa > 5", "messageExpression": "object.spec"},
            ],
        },
    }
    [patch] = plan_policy(policy, checker()(policy)).actions
    found = patch.patch["status"]["typeChecking"]["expressionWarnings"]
    assert found == [
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'\n"
            " | object.spec.replicsa > 5\n | ...........^\n",
        }
    ]


def test_a_range_is_protected_and_then_ready():
    [patch] = plan_cidr(cidr(), [], [], 0.0).actions
    assert patch.patch["metadata"]["finalizers"] == [CIDR_FINALIZER]
    [patch] = plan_cidr(cidr("k", CIDR_FINALIZER), [], [], 0.0).actions
    assert patch.patch["status"]["conditions"][0]["status"] == "True"


def test_a_range_in_use_stays_until_another_holds_its_addresses():
    going = cidr("k", CIDR_FINALIZER, deleted=True)
    [patch] = plan_cidr(going, [], ["10.96.0.1"], 0.0).actions
    assert patch.patch["status"]["conditions"][0]["reason"] == "Terminating"
    [freed] = plan_cidr(going, [cidr("other")], ["10.96.0.1"], 0.0).actions
    assert freed.patch["metadata"]["finalizers"] is None
    [freed] = plan_cidr(going, [], ["192.168.0.1"], 0.0).actions
    assert freed.patch["metadata"]["finalizers"] is None

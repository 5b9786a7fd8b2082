"""What is done at which exit code."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.rules.node_agent.restart_rules import action_at, has_restart_all, may_restart_all

OFF = Release("1.37", gates={"RestartAllContainersOnContainerExits": False})


def rule(action, operator, *values):
    return {"action": action, "exitCodes": {"operator": operator, "values": list(values)}}


ALL_AT_42 = rule("RestartAllContainers", "In", 42)


@pytest.mark.parametrize(
    ("rules", "code", "found"),
    [
        ([], 42, ""),
        ([ALL_AT_42], 42, "RestartAllContainers"),
        ([ALL_AT_42], 1, ""),
        ([rule("Restart", "NotIn", 0, 1)], 2, "Restart"),
        ([rule("Restart", "NotIn", 0, 1)], 1, ""),
        # The first that fits decides.
        ([rule("Restart", "In", 42), ALL_AT_42], 42, "Restart"),
        ([ALL_AT_42, rule("Restart", "NotIn", 0)], 42, "RestartAllContainers"),
    ],
)
def test_the_first_rule_that_fits_says_what_is_done(rules, code, found):
    assert action_at({"name": "c", "restartPolicyRules": rules}, code) == found


@pytest.mark.kubernetes("1.37")
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_rule_of_any_container_restarts_all_where_the_gate_is_on(where):
    spec = {"containers": [{"name": "main"}], where: [{"restartPolicyRules": [ALL_AT_42]}]}
    assert has_restart_all(spec)
    assert may_restart_all(spec)
    assert not may_restart_all({"containers": [{"name": "main"}]})
    with features.used(OFF):
        assert not may_restart_all(spec)

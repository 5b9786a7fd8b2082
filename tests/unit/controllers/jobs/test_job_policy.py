from sampan.controllers.jobs.job_indexes import indexes_of
from sampan.controllers.jobs.job_policy import (
    PolicyAction,
    match_failure_policy,
    matched_success_rule,
)


def job(*rules, **spec):
    return {"spec": {"podFailurePolicy": {"rules": list(rules)}, **spec}}


def pod(code=1, container="c", *conditions):
    state = {"terminated": {"exitCode": code}}
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "status": {
            "containerStatuses": [{"name": container, "state": state}],
            "conditions": [{"type": one, "status": "True"} for one in conditions],
        },
    }


def codes(operator, *values, container=None, action="FailJob"):
    wanted = {"operator": operator, "values": list(values)}
    if container:
        wanted["containerName"] = container
    return {"action": action, "onExitCodes": wanted}


def test_without_a_matching_rule_a_failure_counts():
    assert match_failure_policy(job(), pod()).action is PolicyAction.COUNT
    assert match_failure_policy(job(codes("In", 2)), pod(1)).action is PolicyAction.COUNT


def test_exit_codes_decide():
    assert match_failure_policy(job(codes("In", 42)), pod(42)).action is PolicyAction.FAIL_JOB
    assert match_failure_policy(job(codes("NotIn", 42)), pod(1)).action is PolicyAction.FAIL_JOB
    assert match_failure_policy(job(codes("NotIn", 42)), pod(0)).action is PolicyAction.COUNT
    assert (
        match_failure_policy(job(codes("In", 42, container="x")), pod(42)).action
        is PolicyAction.COUNT
    )


def test_the_message_says_which_rule_it_was():
    message = match_failure_policy(
        job(codes("In", 1, action="Count"), codes("In", 42)), pod(42)
    ).message
    assert message == (
        "Container c for pod ns/p failed with exit code 42 matching FailJob rule at index 1"
    )


def test_conditions_decide():
    patterns = [{"type": "DisruptionTarget", "status": "True"}]
    rule = {"action": "Ignore", "onPodConditions": patterns}
    assert (
        match_failure_policy(job(rule), pod(1, "c", "DisruptionTarget")).action
        is PolicyAction.IGNORE
    )
    assert match_failure_policy(job(rule), pod()).action is PolicyAction.COUNT
    fatal = match_failure_policy(
        job({**rule, "action": "FailJob"}), pod(1, "c", "DisruptionTarget")
    )
    assert fatal.message == (
        "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"
    )


def test_the_first_rule_wins():
    rules = [codes("In", 1, action="Ignore"), codes("In", 1)]
    assert match_failure_policy(job(*rules), pod(1)).action is PolicyAction.IGNORE


def test_success_rules():
    def rule(**rule):
        return {"spec": {"successPolicy": {"rules": [rule]}}}

    done = indexes_of([0, 2, 3])
    assert matched_success_rule(rule(succeededIndexes="0,2"), done, 10) == 0
    assert matched_success_rule(rule(succeededIndexes="0-2"), done, 10) is None
    assert matched_success_rule(rule(succeededCount=3), done, 10) == 0
    assert matched_success_rule(rule(succeededIndexes="0-2", succeededCount=2), done, 10) == 0
    assert matched_success_rule({"spec": {}}, done, 10) is None

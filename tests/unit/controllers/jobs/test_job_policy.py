from sampan.controllers.jobs.job_policy import Verdict, judgement_of, success_rule


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
    assert judgement_of(job(), pod()).verdict is Verdict.COUNT
    assert judgement_of(job(codes("In", 2)), pod(1)).verdict is Verdict.COUNT


def test_exit_codes_decide():
    assert judgement_of(job(codes("In", 42)), pod(42)).verdict is Verdict.FAIL_JOB
    assert judgement_of(job(codes("NotIn", 42)), pod(1)).verdict is Verdict.FAIL_JOB
    assert judgement_of(job(codes("NotIn", 42)), pod(0)).verdict is Verdict.COUNT
    assert judgement_of(job(codes("In", 42, container="x")), pod(42)).verdict is Verdict.COUNT


def test_the_message_says_which_rule_it_was():
    message = judgement_of(job(codes("In", 1, action="Count"), codes("In", 42)), pod(42)).message
    assert message == (
        "Container c failed with exit code 42 for pod ns/p matching FailJob rule at index 1"
    )


def test_conditions_decide():
    patterns = [{"type": "DisruptionTarget", "status": "True"}]
    rule = {"action": "Ignore", "onPodConditions": patterns}
    assert judgement_of(job(rule), pod(1, "c", "DisruptionTarget")).verdict is Verdict.IGNORE
    assert judgement_of(job(rule), pod()).verdict is Verdict.COUNT


def test_the_first_rule_wins():
    rules = [codes("In", 1, action="Ignore"), codes("In", 1)]
    assert judgement_of(job(*rules), pod(1)).verdict is Verdict.IGNORE


def test_success_rules():
    def rule(**rule):
        return {"spec": {"successPolicy": {"rules": [rule]}}}

    done = frozenset({0, 2, 3})
    assert success_rule(rule(succeededIndexes="0,2"), done, 10) == 0
    assert success_rule(rule(succeededIndexes="0-2"), done, 10) is None
    assert success_rule(rule(succeededCount=3), done, 10) == 0
    assert success_rule(rule(succeededIndexes="0-2", succeededCount=2), done, 10) == 0
    assert success_rule({"spec": {}}, done, 10) is None

from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.preemption.budgets import budget_of, violating


def pod(name, app="a", namespace="default"):
    labels = (("app", app),) if app else ()
    return AssignedPod(Usage((), 0, 0), namespace=namespace, labels=labels, name=name)


def budget(allowed, selector, disrupted=()):
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "t")}
    meta = {"namespace": "default", "name": "b"}
    return budget_of({"metadata": meta, "spec": {"selector": selector}, "status": status})


BY_APP = {"matchLabels": {"app": "a"}}


def test_the_first_ones_use_the_budget_up():
    pods = [pod("1"), pod("2", app="b"), pod("3"), pod("4")]
    assert violating(pods, [budget(2, BY_APP)]) == [False, False, False, True]


def test_pods_that_were_counted_already_use_nothing():
    assert violating([pod("1"), pod("2")], [budget(1, BY_APP, ("1",))]) == [False, False]


def test_no_selector_an_empty_one_or_another_namespace_covers_nobody():
    pods = [pod("1"), pod("2", namespace="other"), pod("3", app="")]
    assert violating(pods, [budget(0, None), budget(0, {})]) == [False, False, False]
    assert violating(pods[1:], [budget(0, BY_APP)]) == [False, False]


def test_every_budget_counts():
    assert violating([pod("1")], [budget(1, BY_APP), budget(0, BY_APP)]) == [True]

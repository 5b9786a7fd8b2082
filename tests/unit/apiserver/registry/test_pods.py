import pytest

from sampan.api.errors import Conflict
from sampan.api.objects import copy_of
from sampan.apiserver.registry.pods import bind, grace, prepare_create, prepare_status


def pod(*resources, **spec):
    containers = [{"name": f"c{n}", "resources": one} for n, one in enumerate(resources)]
    return {"metadata": {"name": "x", "generation": 1}, "spec": {"containers": containers, **spec}}


def test_a_new_pod_shows_its_qos_class():
    full = {"cpu": "1.500", "memory": "1Gi"}
    made = pod({"requests": full, "limits": {"cpu": "1.5", "memory": "1024Mi"}})
    prepare_create(made)
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}


def test_a_binding_sets_the_node_once():
    """[A9]"""
    binding = {"target": {"name": "n1"}, "metadata": {"annotations": {"a": "b"}}}
    first = bind(pod({}), binding, 0.0)
    assert first["spec"]["nodeName"] == "n1"
    assert first["metadata"]["annotations"] == {"a": "b"}
    (condition,) = first["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    with pytest.raises(Conflict, match='pod x is already assigned to node "n1"'):
        bind(first, binding, 0.0)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"metadata": {"name": "x", "deletionTimestamp": "t"}}, "is being deleted"),
        ({"spec": {"schedulingGates": [{"name": "g"}]}}, "schedulingGates"),
    ],
)
def test_pods_that_cannot_be_bound(changed, why):
    with pytest.raises(Conflict, match=why):
        bind({**pod({}), **changed}, {"target": {"name": "n"}}, 0.0)


def test_an_unscheduled_condition_is_replaced():
    waiting = {**pod({}), "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
    conditions = bind(waiting, {"target": {"name": "n"}}, 0.0)["status"]["conditions"]
    assert [one["status"] for one in conditions] == ["True"]
    assert waiting["status"]["conditions"][0]["status"] == "False"


def test_a_binding_leaves_the_pod_as_it_was():
    before = pod({}, tolerations=[{"key": "a"}])
    before["metadata"] |= {"labels": {"a": "b"}, "annotations": {"a": "b"}}
    before["status"] = {"conditions": [{"type": "Other", "status": "True"}], "phase": "Pending"}
    kept = copy_of(before)
    topology = "topology.kubernetes.io/zone"
    meta = {"annotations": {"c": "d"}, "labels": {topology: "z", "other": "y"}}
    bound = bind(before, {"target": {"name": "n"}, "metadata": meta}, 0.0)
    assert before == kept
    assert bound["metadata"]["labels"] == {"a": "b", topology: "z", "other": "y"}
    assert bound["metadata"]["annotations"] == {"a": "b", "c": "d"}
    assert [item["type"] for item in bound["status"]["conditions"]] == ["Other", "PodScheduled"]
    assert bound["spec"] == {**before["spec"], "nodeName": "n"}


def test_grace_is_asked_for_by_the_caller_then_by_the_pod():
    running = pod({}, nodeName="n", terminationGracePeriodSeconds=9)
    assert grace(running, None) == 9
    assert grace(running, 3) == 3
    assert grace(running, 0) == 0
    assert grace(pod({}, nodeName="n"), None) == 30
    assert grace(pod({}, nodeName="n", terminationGracePeriodSeconds=-5), None) == 1
    assert grace(pod({}), 30) == 0


def test_a_status_keeps_its_class():
    old = pod({})
    old["status"] = {"qosClass": "BestEffort"}
    new = {"metadata": {}, "status": {"phase": "Running"}}
    prepare_status(new, old)
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}


def test_a_pod_that_is_bound_is_nominated_for_no_node():
    waiting = {**pod({}), "status": {"phase": "Pending", "nominatedNodeName": "a"}}
    bound = bind(waiting, {"target": {"name": "b"}}, 0.0)
    assert bound["status"]["phase"] == "Pending"
    assert "nominatedNodeName" not in bound["status"]

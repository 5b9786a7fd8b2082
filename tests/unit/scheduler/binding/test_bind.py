from sampan.scheduler.binding.bind import (
    GATED,
    GATED_MESSAGE,
    UNSCHEDULABLE,
    nominated,
    not_scheduled,
)

POD = {"metadata": {"name": "p", "uid": "u", "generation": 2}, "status": {}}


def test_the_condition_says_why_and_since_when():
    patch = not_scheduled(POD, UNSCHEDULABLE, "0/1 nodes are available", 0)
    assert patch == {
        "metadata": {"uid": "u"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes are available",
                    "observedGeneration": 2,
                    "lastTransitionTime": "1970-01-01T00:00:00Z",
                    "lastProbeTime": None,
                }
            ]
        },
    }


def test_the_same_condition_is_not_written_twice():
    first = not_scheduled(POD, UNSCHEDULABLE, "why", 0)["status"]
    again = {**POD, "status": first}
    assert not_scheduled(again, UNSCHEDULABLE, "why", 60) is None


def test_a_new_reason_keeps_the_time_at_which_it_began():
    first = not_scheduled(POD, UNSCHEDULABLE, "why", 0)["status"]
    changed = not_scheduled({**POD, "status": first}, UNSCHEDULABLE, "another", 60)
    condition = changed["status"]["conditions"][0]
    assert condition["message"] == "another"
    assert condition["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_the_node_that_a_pod_is_about_to_go_to_is_said_once():
    assert nominated(POD, "n1") == {
        "metadata": {"uid": "u"},
        "status": {"nominatedNodeName": "n1"},
    }
    there = {**POD, "status": {"nominatedNodeName": "n1"}}
    assert nominated(there, "n1") is None
    assert nominated(there, "")["status"] == {"nominatedNodeName": None}
    assert nominated(POD, "") is None


def test_what_the_api_server_says_of_gates_is_not_said_again():
    told = {"type": "PodScheduled", "status": "False", "reason": GATED, "message": GATED_MESSAGE}
    pod = {**POD, "metadata": {**POD["metadata"], "generation": 1}}
    assert not_scheduled({**pod, "status": {"conditions": [told]}}, GATED, GATED_MESSAGE, 0) is None

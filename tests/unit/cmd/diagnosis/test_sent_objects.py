"""cmd/diagnosis/sent_objects.py: findings about what the page sends."""

import pytest

from sampan.api.errors import BadRequest
from sampan.cmd.diagnosis.sent_objects import findings_in

WAITING = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "none:1"'}
POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
    "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "none:1"}]},
    "status": {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "c", "image": "none:1", "ready": False, "restartCount": 0,
             "state": {"waiting": WAITING}}
        ],
    },
}  # fmt: skip


def test_what_keeps_a_pod_is_found_with_what_to_do():
    pulls = {
        "metadata": {"name": "e"}, "reason": "Failed", "message": "no such host",
        "involvedObject": {"fieldPath": "spec.containers{c}"},
    }  # fmt: skip
    [found] = findings_in({"pod": POD, "events": [pulls]})["findings"]
    assert (found["where"], found["what"]) == ("container c", "ImagePullBackOff")
    assert found["why"]
    assert found["advice"]


def test_a_node_that_is_gone_is_told_from_one_that_was_not_sent():
    gone, _ = findings_in({"pod": POD, "node": None})["findings"]
    assert gone["where"] == "node a"


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"pod": []}, {"pod": {}}, {"pod": {"metadata": None}}, {"pod": POD, "events": {"a": 1}},
        {"pod": POD, "events": [1]}, {"pod": {"metadata": {}, "status": [1]}},
        {"pod": {"metadata": {}, "spec": {}, "status": {"containerStatuses": [7]}}},
    ],
)  # fmt: skip
def test_what_is_no_pod_is_refused(asked):
    with pytest.raises(BadRequest):
        findings_in(asked)

from sampan.api.resources import PODS
from sampan.controllers.actions import deletion, merge_patch, status_patch

POD = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}}


def test_a_status_that_did_not_change_is_not_written():
    pod = {**POD, "status": {"phase": "Running"}}
    assert status_patch(PODS, pod, {"phase": "Running"}) is None
    patch = status_patch(PODS, pod, {"phase": "Failed"})
    assert patch.patch == {"metadata": {"uid": "u"}, "status": {"phase": "Failed"}}
    assert patch.subresource == "status"


def test_a_merge_patch_is_for_this_very_version_of_the_object():
    patch = merge_patch(PODS, POD, {"metadata": {"labels": {"x": "y"}}})
    assert patch.patch["metadata"] == {
        "labels": {"x": "y"},
        "uid": "u",
        "resourceVersion": "7",
    }


def test_a_deletion_is_of_this_very_object():
    action = deletion(PODS, POD, grace_seconds=0)
    assert (action.name, action.uid, action.grace_seconds) == ("a", "u", 0)

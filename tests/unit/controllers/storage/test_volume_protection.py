import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.objects import time_text
from sampan.controllers.actions import NOTHING
from sampan.controllers.storage.volume_protection import plan_claim, plan_volume

NOW = 1_800_000_000.0
PROTECTED = ["kubernetes.io/pvc-protection"]


def claim(finalizers=(), deleted=False):
    meta = {"name": "c", "namespace": "default", "finalizers": list(finalizers)}
    return {"metadata": {**meta, **({"deletionTimestamp": "now"} if deleted else {})}}


def finalizers_after(plan):
    [patch] = plan.actions
    return patch.patch["metadata"]["finalizers"]


def test_what_lives_is_protected():
    assert finalizers_after(plan_claim(claim(), [], NOW)) == PROTECTED
    assert plan_claim(claim(PROTECTED), [], NOW) == NOTHING


def test_a_pod_counts_once_it_has_a_node():
    going = claim([*PROTECTED, "other"], deleted=True)
    assert plan_claim(going, [{"spec": {"nodeName": "n"}}], NOW) == NOTHING
    assert finalizers_after(plan_claim(going, [{"spec": {}}], NOW)) == ["other"]
    assert finalizers_after(plan_claim(claim(PROTECTED, deleted=True), [], NOW)) is None


def test_a_claim_of_a_pods_own_is_free_once_its_node_is_done_with_it():
    """Deleted in the foreground, the pod waits for the claim."""

    def pod(volume, **meta):
        return {"metadata": {"name": "p", **meta}, "spec": {"nodeName": "n", "volumes": [volume]}}

    own, named = {"name": "v", "ephemeral": {}}, {"persistentVolumeClaim": {"claimName": "c"}}
    going = claim(PROTECTED, deleted=True)
    leaving = {"deletionTimestamp": "now", "deletionGracePeriodSeconds": 30}
    done = {"deletionTimestamp": "now", "deletionGracePeriodSeconds": 0}
    assert plan_claim(going, [pod(own, **leaving)], NOW) == NOTHING
    assert finalizers_after(plan_claim(going, [pod(own, **done)], NOW)) is None
    assert plan_claim(going, [pod(named, **done)], NOW) == NOTHING


UNUSED = {"type": "Unused", "status": "True", "reason": "NoPodsUsingPVC",
          "message": "No pods are currently referencing this PVC"}  # fmt: skip
USED = {"type": "Unused", "status": "False", "reason": "PodUsingPVC",
        "message": "A pod is currently referencing this PVC"}  # fmt: skip
WAITING = {"spec": {}, "status": {"phase": "Pending"}}
RUNNING = {"status": {"containerStatuses": [{"state": {"running": {}}}]}}
ENDED = {"status": {"phase": "Succeeded"}}
LEAVING = {"metadata": {"deletionTimestamp": "now"}, **RUNNING}
LEFT = {"metadata": {"deletionTimestamp": "now"}, "status": {"containerStatuses": [{}]}}


@pytest.mark.kubernetes("1.37")
@pytest.mark.parametrize(
    ("pods", "before", "after"),
    [
        ([], [], [UNUSED]),
        ([WAITING], [], [USED]),
        ([ENDED, LEFT], [{"type": "Resizing"}, USED], [{"type": "Resizing"}, UNUSED]),
        ([LEAVING], [UNUSED], [USED]),
        ([RUNNING], [USED], None),
        ([], [UNUSED], None),
    ],
)
def test_from_v1_37_on_a_bound_claim_says_since_when_it_is_not_used(pods, before, after):
    """[V1] PersistentVolumeClaimUnusedSinceTime"""
    bound = {**claim(PROTECTED), "status": {"phase": "Bound", "conditions": before}}
    with features.used(Release("1.36")):
        assert plan_claim(bound, pods, NOW) == NOTHING
    found = plan_claim(bound, pods, NOW)
    assert plan_claim({**bound, "status": {"phase": "Pending"}}, pods, NOW) == NOTHING
    if after is None:
        assert found == NOTHING
        return
    [patch] = found.actions
    told = patch.patch["status"]["conditions"]
    assert (patch.subresource, told[-1].pop("lastTransitionTime")) == ("status", time_text(NOW))
    assert told == after


def test_a_volume_is_protected_while_it_is_bound():
    going = claim(["kubernetes.io/pv-protection"], deleted=True)
    assert plan_volume({**going, "status": {"phase": "Bound"}}) == NOTHING
    assert finalizers_after(plan_volume({**going, "status": {"phase": "Released"}})) is None

from sampan.controllers.actions import NOTHING
from sampan.controllers.storage.volume_protection import plan_claim, plan_volume

PROTECTED = ["kubernetes.io/pvc-protection"]


def claim(finalizers=(), deleted=False):
    meta = {"name": "c", "namespace": "default", "finalizers": list(finalizers)}
    return {"metadata": {**meta, **({"deletionTimestamp": "now"} if deleted else {})}}


def finalizers_after(plan):
    [patch] = plan.actions
    return patch.patch["metadata"]["finalizers"]


def test_what_lives_is_protected():
    assert finalizers_after(plan_claim(claim(), [])) == PROTECTED
    assert plan_claim(claim(PROTECTED), []) == NOTHING


def test_a_pod_counts_once_it_has_a_node():
    going = claim([*PROTECTED, "other"], deleted=True)
    assert plan_claim(going, [{"spec": {"nodeName": "n"}}]) == NOTHING
    assert finalizers_after(plan_claim(going, [{"spec": {}}])) == ["other"]
    assert finalizers_after(plan_claim(claim(PROTECTED, deleted=True), [])) is None


def test_a_volume_is_protected_while_it_is_bound():
    going = claim(["kubernetes.io/pv-protection"], deleted=True)
    assert plan_volume({**going, "status": {"phase": "Bound"}}) == NOTHING
    assert finalizers_after(plan_volume({**going, "status": {"phase": "Released"}})) is None

from sampan.api.resources import PODS, RESOURCE_CLAIMS
from sampan.controllers.actions import Create, Delete, Patch, Record
from sampan.controllers.storage.resource_claims import (
    FINALIZER,
    POD_CLAIM_NAME,
    plan_claim,
    plan_pod,
)

TEMPLATE = {
    "metadata": {"name": "t", "namespace": "default"},
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"requests": []}}},
}


def pod(phase="Pending", claims=("gpu",), **status):
    entries = [{"name": one, "resourceClaimTemplateName": "t"} for one in claims]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"resourceClaims": entries}, "status": {"phase": phase, **status},
    }  # fmt: skip


def claim(reserved=(), allocation=None, **meta):
    status = {"reservedFor": [{"resource": "pods", "name": n, "uid": u} for n, u in reserved]}
    if allocation is not None:
        status["allocation"] = allocation
    named = {"name": "c", "namespace": "default", "uid": "cu", "resourceVersion": "7", **meta}
    return {"metadata": named, "spec": {}, "status": status}


def test_a_claim_is_made_from_the_template_and_then_named_in_the_pods_status():
    """[S4] A playbook: made, not made twice, named, and that is all."""
    [made] = plan_pod(pod(), [], {"t": TEMPLATE}).actions
    assert isinstance(made, Create)
    meta = made.obj["metadata"]
    assert meta["name"].startswith("p-gpu-")
    assert meta["annotations"] == {POD_CLAIM_NAME: "gpu"}
    assert meta["labels"] == {"a": "b"}
    assert meta["ownerReferences"][0]["uid"] == "u"
    assert made.obj["spec"] == TEMPLATE["spec"]["spec"]
    assert plan_pod(pod(), [], {"t": TEMPLATE}).actions == [made]  # the same name again
    [named] = plan_pod(pod(), [made.obj], {"t": TEMPLATE}).actions
    assert isinstance(named, Patch)
    assert (named.resource, named.subresource) == (PODS, "status")
    said = [{"name": "gpu", "resourceClaimName": meta["name"]}]
    assert named.patch["status"] == {"resourceClaimStatuses": said}
    done = pod(resourceClaimStatuses=said)
    assert not plan_pod(done, [made.obj], {"t": TEMPLATE}).actions


def test_two_claims_of_a_pod_have_two_names():
    first, second = plan_pod(pod(claims=("a", "b")), [], {"t": TEMPLATE}).actions
    assert first.obj["metadata"]["name"] != second.obj["metadata"]["name"]


def test_a_template_that_is_not_there_is_told():
    [told] = plan_pod(pod(), [], {}).actions
    assert isinstance(told, Record)
    assert (told.type, told.reason) == ("Warning", "FailedResourceClaimCreation")
    assert 'resource claim template "t" not found' in told.message


def test_a_pod_that_is_over_gets_no_claims():
    assert not plan_pod(pod("Succeeded"), [], {"t": TEMPLATE}).actions


def test_who_is_done_is_taken_off_and_the_last_one_takes_the_devices_along():
    """A playbook: two users, one, none; then the finalizer goes; then nothing is left to do."""
    running = {"u1": pod("Running"), "u2": pod("Running")}
    both = claim([("a", "u1"), ("b", "u2")], {"devices": {}}, finalizers=[FINALIZER])
    assert not plan_claim(both, running, None).actions
    [left] = plan_claim(both, running | {"u1": pod("Succeeded")}, None).actions
    assert [one["uid"] for one in left.patch["status"]["reservedFor"]] == ["u2"]
    assert left.patch["metadata"] == {"uid": "cu", "resourceVersion": "7"}
    [none] = plan_claim(both, {}, None).actions
    assert none.subresource == "status"
    assert none.patch["status"] == {"allocation": None, "reservedFor": None}
    [free] = plan_claim(claim(finalizers=[FINALIZER]), {}, None).actions
    assert free.patch["metadata"]["finalizers"] is None
    assert not plan_claim(claim(), {}, None).actions


def test_a_user_that_is_no_pod_is_not_ours_to_judge():
    other = claim(allocation={"devices": {}})
    other["status"]["reservedFor"] = [{"apiGroup": "x", "resource": "widgets", "uid": "w"}]
    assert not plan_claim(other, {}, None).actions


def test_a_claim_of_a_template_goes_when_its_pod_is_over():
    [gone] = plan_claim(claim(), {}, pod("Succeeded")).actions
    assert isinstance(gone, Delete)
    assert gone.resource is RESOURCE_CLAIMS
    assert not plan_claim(claim(), {}, pod("Running")).actions

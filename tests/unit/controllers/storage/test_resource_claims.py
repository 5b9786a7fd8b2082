from sampan.api.errors import Forbidden
from sampan.api.resources import PODS, RESOURCE_CLAIMS
from sampan.controllers.actions import Create, Delete, Outcome, Patch, Record, next_step
from sampan.controllers.storage.resource_claims import (
    FINALIZER,
    POD_CLAIM_NAME,
    plan_claim,
    plan_pod,
)
from tests.support.generators.workload_objects import without_trouble

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


def planned(of, claims=(), templates=None, **named):
    templates = {"t": TEMPLATE} if templates is None else templates
    return plan_pod(of, list(claims), templates, named.get)


def owned(name, entry="gpu", uid="u"):
    owner = {"kind": "Pod", "name": "p", "uid": uid, "controller": True}
    return claim(name=name, ownerReferences=[owner], annotations={POD_CLAIM_NAME: entry})


def named_in(plan):
    [patch] = [action for action in without_trouble(plan) if isinstance(action, Patch)]
    assert (patch.resource, patch.subresource) == (PODS, "status")
    listed = patch.patch["status"]["resourceClaimStatuses"]
    return {one["name"]: one["resourceClaimName"] for one in listed}


def test_a_claim_is_made_from_the_template_and_named_in_the_pods_status():
    found = planned(pod())
    [made] = found.actions
    assert isinstance(made, Create)
    meta = made.obj["metadata"]
    assert meta["generateName"] == "p-gpu-"
    assert meta["annotations"] == {POD_CLAIM_NAME: "gpu"}
    assert meta["labels"] == {"a": "b"}
    [owner] = meta["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("u", True)
    assert "blockOwnerDeletion" not in owner
    assert made.obj["spec"] == TEMPLATE["spec"]["spec"]
    assert named_in(found) == {"gpu": "p-gpu-new"}


def test_one_that_is_there_is_only_named():
    found = planned(pod(), [owned("p-gpu-x")])
    assert list(found.actions) == []
    assert named_in(found) == {"gpu": "p-gpu-x"}
    said = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    done = planned(
        pod(resourceClaimStatuses=said), [owned("p-gpu-x")], **{"p-gpu-x": owned("p-gpu-x")}
    )
    assert not done.actions
    assert not without_trouble(done)


def test_one_that_was_lost_is_made_again():
    said = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    waiting = pod(resourceClaimStatuses=said)
    assert named_in(planned(waiting)) == {"gpu": "p-gpu-new"}
    strangers = owned("p-gpu-x", uid="another")
    assert named_in(planned(waiting, **{"p-gpu-x": strangers})) == {"gpu": "p-gpu-new"}


def test_both_names_are_in_the_claims_however_long_they_are():
    long = pod()
    long["metadata"]["name"] = "p" * 100
    [made] = planned(long).actions
    prefix = made.obj["metadata"]["generateName"]
    assert prefix == "p" * 54 + "-g"


def test_a_template_that_is_not_there_is_told():
    [told] = planned(pod(), templates={}).actions
    assert isinstance(told, Record)
    assert (told.type, told.reason) == ("Warning", "FailedResourceClaimCreation")
    assert told.message == (
        'PodResourceClaim gpu: resource claim template "t": '
        'resourceclaimtemplate.resource.k8s.io "t" not found'
    )


def test_a_pod_that_is_over_gets_no_claims():
    assert not planned(pod("Succeeded")).actions


def test_a_pod_that_came_to_its_node_without_the_scheduler_has_its_claims_reserved():
    said = [{"name": "gpu", "resourceClaimName": "c"}]
    bound = pod(resourceClaimStatuses=said)
    bound["spec"]["nodeName"] = "n1"
    mine = {**owned("c"), "status": {"allocation": {"devices": {}}}}
    [reserved] = planned(bound, [mine], c=mine).actions
    assert reserved.patch["status"]["reservedFor"] == [
        {"resource": "pods", "name": "p", "uid": "u"}
    ]
    mine["status"]["reservedFor"] = reserved.patch["status"]["reservedFor"]
    assert not planned(bound, [mine], c=mine).actions
    assert not planned(bound, [owned("c")], c=owned("c")).actions  # without devices


def test_who_is_done_is_taken_off_and_the_last_one_takes_the_devices_along():
    """A playbook: two users, one, none; then the finalizer goes; then nothing is left to do."""
    running = {"u1": pod("Running"), "u2": pod("Running")}
    both = claim([("a", "u1"), ("b", "u2")], {"devices": {}}, finalizers=[FINALIZER])
    assert not plan_claim(both, running, None).actions
    [left] = plan_claim(both, running | {"u1": pod("Succeeded")}, None).actions
    assert [one["uid"] for one in left.patch["status"]["reservedFor"]] == ["u2"]
    assert left.patch["metadata"] == {"uid": "cu", "resourceVersion": "7"}
    last = plan_claim(both, {}, None)
    [none] = last.actions
    assert none.subresource == "status"
    assert none.patch["status"] == {"allocation": None, "reservedFor": None}
    [free] = without_trouble(last)
    assert free.patch["metadata"]["$deleteFromPrimitiveList/finalizers"] == [FINALIZER]
    refused = [Outcome(none, error=Forbidden("no"))]
    assert not next_step(last, refused).actions
    assert not plan_claim(claim(), {}, None).actions


def test_devices_that_nobody_has_reserved_yet_stay():
    given = claim(allocation={"devices": {}}, finalizers=[FINALIZER])
    found = plan_claim(given, {}, None)
    assert not found.actions
    assert not without_trouble(found)
    given["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    [freed] = plan_claim(given, {}, None).actions
    assert freed.patch["status"] == {"allocation": None}


def test_devices_that_somebody_else_gave_are_not_ours_to_take():
    foreign = claim([("a", "u1")], {"devices": {}})
    [left] = plan_claim(foreign, {}, None).actions
    assert left.patch["status"] == {"reservedFor": None}


def test_a_user_that_is_no_pod_is_not_ours_to_judge():
    other = claim(allocation={"devices": {}})
    other["status"]["reservedFor"] = [{"apiGroup": "x", "resource": "widgets", "uid": "w"}]
    assert not plan_claim(other, {}, None).actions


def test_a_claim_of_a_template_goes_when_its_pod_is_over():
    [gone] = plan_claim(owned("c"), {}, pod("Succeeded")).actions
    assert isinstance(gone, Delete)
    assert gone.resource is RESOURCE_CLAIMS
    assert not plan_claim(owned("c"), {}, pod("Running")).actions
    [stale] = plan_claim(owned("c", uid="another"), {}, pod("Running")).actions
    assert isinstance(stale, Delete)

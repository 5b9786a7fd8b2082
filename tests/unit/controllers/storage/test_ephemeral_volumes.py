from sampan.controllers.actions import NOTHING, Create, Record
from sampan.controllers.storage.ephemeral_volumes import plan

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def pod(**meta):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u", **meta},
        "spec": {
            "volumes": [
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": TEMPLATE}},
                {"name": "other", "emptyDir": {}},
            ]
        },
    }


def test_a_claim_is_made_from_the_template_and_belongs_to_the_pod():
    [create] = plan(pod(), {}).actions
    assert isinstance(create, Create)
    meta = create.obj["metadata"]
    assert (meta["name"], meta["labels"]) == ("p-scratch", {"a": "b"})
    assert meta["ownerReferences"][0]["uid"] == "u"
    assert create.obj["spec"] == TEMPLATE["spec"]
    assert not plan(pod(), {"p-scratch": create.obj}).actions


def test_a_claim_of_somebody_else_is_not_taken():
    [event] = plan(pod(), {"p-scratch": {"metadata": {}}}).actions
    assert isinstance(event, Record)
    assert event.reason == "FailedBinding"
    assert event.message == (
        "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p "
        "(pod is not owner)"
    )


def test_a_pod_that_goes_needs_nothing():
    assert plan(pod(deletionTimestamp="now"), {}) == NOTHING

from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.controllers.actions import NOTHING, Outcome
from sampan.controllers.storage.persistent_volumes import Storage, plan_claim, plan_volume


def claim(marks=None, status=None, **spec):
    return {
        "metadata": {
            "name": "data",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "7",
            "annotations": marks or {},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
        "status": status or {"phase": "Pending"},
    }


def volume(marks=None, phase="Available", **spec):
    return {
        "metadata": {"name": "v", "uid": "v1", "resourceVersion": "5", "annotations": marks or {}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec},
        "status": {"phase": phase},
    }


TO_U1 = {"namespace": "default", "name": "data", "uid": "u1"}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def test_the_volume_is_written_first_and_on_condition():
    plan = plan_claim(claim(), Storage({"v": volume()}, {}))
    [first] = plan.actions
    assert first.resource is PERSISTENT_VOLUMES
    assert first.patch["metadata"]["resourceVersion"] == "5"
    rest = plan.then([Outcome(first)])
    assert [(one.resource, one.subresource) for one in rest] == [
        (PERSISTENT_VOLUMES, "status"),
        (PERSISTENT_VOLUME_CLAIMS, ""),
        (PERSISTENT_VOLUME_CLAIMS, "status"),
    ]


def test_a_bound_pair_needs_nothing():
    status = {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
    }
    pair = claim(BOUND, status, volumeName="v"), volume(phase="Bound", claimRef=TO_U1)
    assert not plan_claim(pair[0], Storage({"v": pair[1]}, {})).actions
    assert plan_volume(pair[1], pair[0]) == NOTHING


def test_a_claim_that_lost_its_volume_says_so_once():
    plan = plan_claim(claim(BOUND, volumeName="v"), Storage({}, {}))
    patch, event = plan.actions
    assert patch.patch["status"]["phase"] == "Lost"
    assert event.reason == "ClaimLost"
    assert plan_claim(claim(BOUND, {"phase": "Lost"}, volumeName="v"), Storage({}, {})) == NOTHING


def test_a_claim_whose_volume_belongs_to_another_is_misbound():
    stolen = volume(claimRef={**TO_U1, "uid": "u2"})
    plan = plan_claim(claim(BOUND, volumeName="v"), Storage({"v": stolen}, {}))
    assert plan.actions[1].reason == "ClaimMisbound"


def test_a_volume_whose_claim_took_another_is_free_again():
    elsewhere = claim(volumeName="w")
    ours = volume({"pv.kubernetes.io/bound-by-controller": "yes"}, claimRef=TO_U1)
    [freed] = plan_volume(ours, elsewhere).actions
    assert freed.patch["spec"] == {"claimRef": None}
    [kept] = plan_volume(volume(claimRef=TO_U1), elsewhere).actions
    assert kept.patch["spec"] == {"claimRef": {"uid": None, "resourceVersion": None}}


def test_a_class_without_a_provisioner_makes_nothing():
    none = {"metadata": {"name": "c"}, "provisioner": "kubernetes.io/no-provisioner"}
    [event] = plan_claim(claim(storageClassName="c"), Storage({}, {"c": none})).actions
    assert event.message == "no volume plugin matched name: kubernetes.io/no-provisioner"
    [event] = plan_claim(claim(storageClassName="c"), Storage({}, {})).actions
    assert event.message == 'storageclass.storage.k8s.io "c" not found'

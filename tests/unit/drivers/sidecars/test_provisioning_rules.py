"""What a claim asks of a driver, and the volume that it becomes."""

import pytest

from sampan.drivers.sidecars import provisioning_rules as rules
from sampan.drivers.sidecars.provisioning_rules import Made

DRIVER = "d.example.com"


def claim(annotations=None, **spec):
    notes = {rules.PROVISIONER: DRIVER, **(annotations or {})}
    return {
        "metadata": {"name": "c", "namespace": "shop", "uid": "u", "annotations": notes},
        "spec": {"accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }  # fmt: skip


def storage_class(**more):
    return {"metadata": {"name": "fast"}, "provisioner": DRIVER, **more}


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        (True, claim()),
        (True, claim({rules.PROVISIONER: "", rules.OLD_PROVISIONER: DRIVER})),
        (False, claim({rules.PROVISIONER: "other"})),
        (False, claim(volumeName="pv")),
    ],
)
def test_whose_claim_it_is(wanted, asked):
    """[H1]"""
    assert rules.wants_volume(asked, DRIVER) is wanted


def test_a_claim_that_waits_is_its_nodes_and_others_are_one_nodes():
    waits = storage_class(volumeBindingMode=rules.WAITS)
    chosen = claim({rules.SELECTED_NODE: "n2"})
    assert not rules.is_ready(claim(), waits, "n1", "n1")
    assert rules.is_ready(chosen, waits, "n2", "n1")
    assert not rules.is_ready(chosen, waits, "n1", "n1")
    assert [rules.is_ready(claim(), storage_class(), node, "n1") for node in ("n1", "n2")] == [
        True, False,
    ]  # fmt: skip


def test_secrets_are_named_by_templates():
    names = {
        "provisioner-secret": ("${pvc.namespace}", "${pvc.name}-${pvc.annotations['team']}"),
        "node-stage-secret": ("infra", "${pv.name}"),
    }
    parameters = {
        f"{rules.PREFIX}{kind}-{part}": text
        for kind, both in names.items()
        for part, text in zip(("namespace", "name"), both, strict=True)
    }
    kind = storage_class(parameters={**parameters, "tier": "gold", f"{rules.PREFIX}fstype": "xfs"})
    asked = claim({"team": "red"})
    assert rules.secret_references(kind, asked) == {
        "provisioner-secret": ("shop", "c-red"),
        "node-stage-secret": ("infra", "pvc-u"),
    }
    assert rules.parameters_of(kind) == {"tier": "gold"}
    volume = rules.volume_object(asked, kind, DRIVER, Made("h", 2 << 30, {"a": "b"}), "me")
    assert volume["spec"]["csi"] == {
        "driver": DRIVER, "volumeHandle": "h", "fsType": "xfs",
        "volumeAttributes": {"a": "b", "storage.kubernetes.io/csiProvisionerIdentity": "me"},
        "nodeStageSecretRef": {"namespace": "infra", "name": "pvc-u"},
    }  # fmt: skip
    assert volume["metadata"]["annotations"][rules.DELETION_SECRET.format("name")] == "c-red"


def test_a_volume_is_what_the_claim_and_its_class_say():
    kind = storage_class(reclaimPolicy="Retain", mountOptions=["noatime"])
    asked = claim(volumeMode="Block", volumeAttributesClassName="gold")
    made = Made("h", 0, {}, [{"zone": "a", "rack": "1"}, {"zone": "b"}])
    spec = rules.volume_object(asked, kind, DRIVER, made, "me")["spec"]
    assert spec["capacity"] == {"storage": "1Gi"}  # the driver did not say
    assert (spec["persistentVolumeReclaimPolicy"], spec["volumeMode"]) == ("Retain", "Block")
    assert spec["volumeAttributesClassName"] == "gold"
    assert spec["claimRef"]["uid"] == "u"
    terms = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert [[item["key"] for item in term["matchExpressions"]] for term in terms] == [
        ["rack", "zone"], ["zone"],
    ]  # fmt: skip


def test_where_a_node_is_in_the_drivers_words():
    node = {"metadata": {"labels": {"zone": "a", "other": "x"}}}
    csi_node = {"spec": {"drivers": [{"name": DRIVER, "topologyKeys": ["zone", "rack"]}]}}
    assert rules.segments_of(node, csi_node, DRIVER) == {"zone": "a"}
    assert rules.segments_of(node, csi_node, "other") == {}


def volume(phase, policy="Delete", *, deleted=False, finalizers=(rules.FINALIZER,)):
    meta = {"name": "v", "annotations": {rules.PROVISIONED_BY: DRIVER},
            "finalizers": list(finalizers)}  # fmt: skip
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"persistentVolumeReclaimPolicy": policy},
            "status": {"phase": phase}}  # fmt: skip


@pytest.mark.parametrize(
    ("found", "deletes", "lets_go"),
    [
        (volume("Released"), True, False),
        (volume("Bound"), False, False),
        (volume("Released", "Retain"), False, False),
        (volume("Bound", deleted=True), False, False),  # its claim comes first
        (volume("Released", deleted=True), True, False),
        (volume("Released", "Retain", deleted=True), False, True),
        (volume("Released", deleted=True, finalizers=()), False, False),
    ],
)
def test_which_volumes_go_with_what_is_in_them(found, deletes, lets_go):
    assert rules.is_to_be_deleted(found, DRIVER) is deletes
    assert rules.is_given_up(found, DRIVER) is lets_go
    assert not rules.is_to_be_deleted(found, "other")

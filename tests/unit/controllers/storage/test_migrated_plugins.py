"""Claims and volumes of in-tree plugins, handed to CSI drivers [H1]."""

import pytest

from sampan.controllers.storage.migrated_plugins import (
    EXTERNAL_FINALIZER,
    IN_TREE_FINALIZER,
    claim_patch,
    volume_patch,
    why_not_provisioned,
)

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA = "volume.beta.kubernetes.io/storage-provisioner"
PROVISIONED_BY, MIGRATED_TO = "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to"
EBS, EBS_DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"


def obj(notes, finalizers=(), policy="Delete"):
    meta = {"name": "x", "uid": "u", "resourceVersion": "7", "annotations": notes}
    meta["finalizers"] = list(finalizers)
    return {"metadata": meta, "spec": {"persistentVolumeReclaimPolicy": policy}}


@pytest.mark.parametrize(
    ("notes", "marked"),
    [
        ({PROVISIONER: EBS}, {MIGRATED_TO: EBS_DRIVER}),
        ({BETA: EBS}, {MIGRATED_TO: EBS_DRIVER}),
        ({PROVISIONER: "d.example.com", BETA: EBS}, None),
        ({PROVISIONER: EBS, MIGRATED_TO: EBS_DRIVER}, None),
        ({PROVISIONER: EBS, MIGRATED_TO: "other"}, {MIGRATED_TO: EBS_DRIVER}),
        ({PROVISIONER: EBS_DRIVER, MIGRATED_TO: EBS_DRIVER}, {MIGRATED_TO: None}),
        ({MIGRATED_TO: EBS_DRIVER}, None),
        ({}, None),
    ],
)
def test_a_claim_says_which_driver_makes_its_volume(notes, marked):
    patch = claim_patch(obj(notes))
    found = patch and patch.patch["metadata"]["annotations"]
    assert found == marked


@pytest.mark.parametrize(
    ("provisioner", "policy", "had", "has"),
    [
        (EBS, "Delete", [IN_TREE_FINALIZER, "x/y"], ["x/y"]),
        ("d.example.com", "Delete", [EXTERNAL_FINALIZER], None),
        ("kubernetes.io/host-path", "Delete", ["x/y"], ["x/y", IN_TREE_FINALIZER]),
        ("kubernetes.io/host-path", "Delete", [IN_TREE_FINALIZER], None),
        ("kubernetes.io/host-path", "Retain", [IN_TREE_FINALIZER], []),
        ("kubernetes.io/host-path", "Retain", [EXTERNAL_FINALIZER], []),
    ],
)
def test_who_deletes_a_volume_has_its_finalizer(provisioner, policy, had, has):
    marks = {PROVISIONED_BY: provisioner} | (
        {MIGRATED_TO: EBS_DRIVER} if provisioner == EBS else {}
    )
    patch = volume_patch(obj(marks, had, policy))
    assert (patch.patch["metadata"]["finalizers"] if patch else None) == has


def test_a_volume_that_nobody_provisioned_stays_as_it_is():
    assert volume_patch(obj({MIGRATED_TO: EBS_DRIVER}, [IN_TREE_FINALIZER])) is None


@pytest.mark.parametrize(
    ("provisioner", "why"),
    [
        (EBS, ""),
        ("d.example.com", ""),
        ("kubernetes.io/glusterfs", "no volume plugin matched name: kubernetes.io/glusterfs"),
        ("kubernetes.io/nfs", "no provisionable volume plugin matched"),
        (
            "kubernetes.io/host-path",
            "Failed to create provisioner: provisioning in volume plugin "
            '"kubernetes.io/host-path" is disabled',
        ),
    ],
)
def test_classes_of_plugins_that_are_gone_make_nothing(provisioner, why):
    assert why_not_provisioned(provisioner) == why

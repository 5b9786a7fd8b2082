"""Rows of volumes and claims."""

from sampan.apiserver.printers import storage

NOW = 1_700_000_000.0


def test_volumes_and_claims():
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"},
        "storageClassName": "fast",
    }  # fmt: skip
    volume = {"metadata": {"name": "v"}, "spec": spec, "status": {"phase": "Bound"}}
    assert storage.VOLUMES.cells(volume, NOW)[:8] == [
        "v", "1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "fast", "<unset>",
    ]  # fmt: skip
    claim = {
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}},
    }
    assert storage.CLAIMS.cells(claim, NOW)[1:5] == ["Bound", "v", "2Gi", ""]
    leaving = {"metadata": {"deletionTimestamp": "2023-11-14T22:13:10Z"}}
    assert storage.CLAIMS.cells(leaving, NOW)[1:5] == ["Terminating", "", "", ""]


def test_classes_show_which_one_is_the_default():
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    obj = {"metadata": {"name": "s", "annotations": annotations}, "provisioner": "p"}
    assert storage.STORAGE_CLASSES.cells(obj, NOW)[:5] == [
        "s (default)", "p", "Delete", "Immediate", False,
    ]  # fmt: skip


def test_drivers_and_claims_of_devices():
    driver = {"spec": {"tokenRequests": [{"audience": "x"}], "volumeLifecycleModes": ["Ephemeral"]}}
    assert storage.CSI_DRIVERS.cells(driver, NOW)[1:7] == [
        True,
        False,
        False,
        "x",
        False,
        "Ephemeral",
    ]
    assert storage.RESOURCE_CLAIMS.cells({}, NOW)[1] == "pending"
    claim = {"status": {"allocation": {}, "reservedFor": [{}]}}
    assert storage.RESOURCE_CLAIMS.cells(claim, NOW)[1] == "allocated,reserved"

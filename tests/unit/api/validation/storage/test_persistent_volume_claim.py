"""What a claim's status may say, and how it may shrink."""

import pytest

from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS
from sampan.api.validation import validate_status_update
from sampan.api.validation.storage.persistent_volume_claim import RULES


def test_a_size_is_not_negative():
    meta = {"name": "x", "resourceVersion": "1"}
    old = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    new = {**old, "status": {"capacity": {"storage": "-1Gi"}}}
    errors = validate_status_update(PERSISTENT_VOLUME_CLAIMS, new, old)
    assert [one.field for one in errors] == ["status.capacity[storage]"]


def claim(size, capacity):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "volumeName": "v",
    }
    status = {"phase": "Bound", **({"capacity": {"storage": capacity}} if capacity else {})}
    return {"metadata": {"name": "c", "namespace": "ns"}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("had", "wanted", "capacity", "allowed"),
    [
        ("1Gi", "2Gi", "1Gi", True),
        ("3Gi", "2Gi", "1Gi", True),  # the growth failed: it may be smaller
        ("3Gi", "1Gi", "1Gi", False),
        ("3Gi", "500Mi", "1Gi", False),
        ("3Gi", "1Gi", "", True),
    ],
)
def test_a_claim_shrinks_only_to_more_than_it_has(had, wanted, capacity, allowed):
    errors = []
    RULES.update(claim(wanted, capacity), claim(had, capacity), errors)
    assert [error.field for error in errors] == (
        [] if allowed else ["spec.resources.requests.storage"]
    )

"""What a claim's status may say."""

from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS
from sampan.api.validation import validate_status_update


def test_a_size_is_not_negative():
    meta = {"name": "x", "resourceVersion": "1"}
    old = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    new = {**old, "status": {"capacity": {"storage": "-1Gi"}}}
    errors = validate_status_update(PERSISTENT_VOLUME_CLAIMS, new, old)
    assert [one.field for one in errors] == ["status.capacity[storage]"]

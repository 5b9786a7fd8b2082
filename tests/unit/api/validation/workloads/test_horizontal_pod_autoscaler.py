"""What an autoscaler's status may say."""

from sampan.api.resources import HORIZONTAL_POD_AUTOSCALERS
from sampan.api.validation import validate_status_update


def test_a_count_is_not_negative():
    meta = {"name": "x", "resourceVersion": "1"}
    old = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta}
    new = {**old, "status": {"currentReplicas": -1}}
    errors = validate_status_update(HORIZONTAL_POD_AUTOSCALERS, new, old)
    assert [one.field for one in errors] == ["status.currentReplicas"]

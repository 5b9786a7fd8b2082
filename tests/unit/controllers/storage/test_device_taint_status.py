import pytest

from sampan.api.resources import DEVICE_TAINT_RULES
from sampan.controllers.actions import NOTHING
from sampan.controllers.storage.device_taint_status import Facts, condition, plan_status


@pytest.mark.parametrize(
    ("effect", "facts", "said"),
    [
        ("NoExecute", Facts(0), ("False", "NotStarted", "")),
        (
            "NoExecute",
            Facts(2, 3, 2),
            (
                "True", "PodsPendingEviction",
                "3 pods need to be evicted in 2 different namespaces. 2 pods evicted since starting"
                " the controller.",
            ),
        ),
        (
            "NoSchedule",
            Facts(0),
            ("False", "OtherEffect", "Eviction only happens for the NoExecute effect."),
        ),
    ],
)  # fmt: skip
def test_a_rule_says_what_it_does(effect, facts, said):
    assert tuple(condition(effect, facts).values()) == said


def test_what_is_said_changes_every_ten_seconds_unless_the_rule_does():
    rule = {
        "metadata": {"name": "r", "uid": "u", "generation": 1},
        "spec": {"taint": {"effect": "NoExecute"}},
    }
    [patch] = plan_status(DEVICE_TAINT_RULES, rule, lambda: Facts(0), 100.0).actions
    rule["status"] = patch.patch["status"]
    assert plan_status(DEVICE_TAINT_RULES, rule, lambda: Facts(1), 103.0).again_seconds == 7.0
    assert plan_status(DEVICE_TAINT_RULES, rule, lambda: Facts(0), 111.0) == NOTHING
    assert plan_status(DEVICE_TAINT_RULES, rule, lambda: Facts(1), 111.0).actions
    rule["metadata"]["generation"] = 2
    assert plan_status(DEVICE_TAINT_RULES, rule, lambda: Facts(1), 103.0).actions

import pytest

from sampan.scheduler.model.tolerations import Taint, keeps_away, tolerations_of


def tolerating(**toleration):
    return tolerations_of({"spec": {"tolerations": [toleration]}})


TAINT = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "kept_away"),
    [
        ({"operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists"}, False),
        ({"key": "gpu", "value": "yes"}, False),
        ({"key": "gpu", "value": "no"}, True),
        ({"key": "cpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, True),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration, kept_away):
    assert keeps_away(tolerating(**toleration), frozenset({TAINT})) is kept_away


def test_a_soft_taint_keeps_nobody_away():
    assert not keeps_away((), frozenset({Taint("gpu", "", "PreferNoSchedule")}))

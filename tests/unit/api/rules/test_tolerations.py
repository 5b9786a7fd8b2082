import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.tolerations import Taint, is_tolerated, keeps_away, tolerations_of


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
        ({"key": "gpu", "operator": "Near", "value": "yes"}, True),
        ({}, True),
        ({"value": "yes"}, False),  # as upstream; validation asks for a key
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration, kept_away):
    assert keeps_away(tolerating(**toleration), frozenset({TAINT})) is kept_away


def test_a_soft_taint_keeps_nobody_away():
    assert not keeps_away((), frozenset({Taint("gpu", "", "PreferNoSchedule")}))


WORDS = st.sampled_from(["", "a", "b"])
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
TAINTS = st.builds(Taint, WORDS.filter(bool), WORDS, EFFECTS)


@given(TAINTS, WORDS, EFFECTS)
def test_exists_without_a_key_tolerates_all_and_a_narrower_one_no_more(taint, key, effect):
    assert is_tolerated(tolerating(operator="Exists"), taint)
    narrow = tolerating(operator="Exists", key=key, effect=effect)
    expected = key in ("", taint.key) and effect == taint.effect
    assert is_tolerated(narrow, taint) is expected


def test_only_the_effects_asked_about_keep_away():
    assert not keeps_away((), [TAINT], ("NoExecute",))
    assert keeps_away((), [TAINT], ("NoSchedule",))

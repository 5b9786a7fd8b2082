"""What a disruption budget lets go, as the eviction subresource reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import Forbidden, TooManyRequests
from sampan.api.rules.disruption import (
    MOST_DISRUPTED,
    charged_status,
    is_charged,
    is_guarded,
    may_become_ready,
)

READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
UNREADY = {"status": {"phase": "Running"}}


def budget(policy=None, generation=1, **status):
    spec = {} if policy is None else {"unhealthyPodEvictionPolicy": policy}
    meta = {"name": "p", "generation": generation}
    return {"metadata": meta, "spec": spec, "status": {"observedGeneration": 1, **status}}


@pytest.mark.parametrize(
    ("phase", "deleted", "guarded", "may_be"),
    [
        ("Running", False, True, True),
        ("Unknown", False, True, True),
        ("Pending", False, False, True),
        ("Succeeded", False, False, False),
        ("Failed", False, False, False),
        ("Running", True, False, False),
    ],
)
def test_pods_that_run_are_guarded(phase, deleted, guarded, may_be):
    meta = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    pod = {"metadata": meta, "status": {"phase": phase}}
    assert (is_guarded(pod), may_become_ready(pod)) == (guarded, may_be)


@pytest.mark.parametrize(
    ("pod", "policy", "current", "desired", "charged"),
    [
        (READY, "AlwaysAllow", 9, 1, True),
        (UNREADY, "AlwaysAllow", 0, 9, False),
        (UNREADY, None, 2, 2, False),
        (UNREADY, "IfHealthyBudget", 2, 2, False),
        (UNREADY, "IfHealthyBudget", 1, 2, True),
        (UNREADY, None, 0, 0, True),
    ],
)
def test_what_is_not_ready_goes_free_by_policy_or_while_the_others_are_enough(
    pod, policy, current, desired, charged
):
    assert (
        is_charged(pod, budget(policy, currentHealthy=current, desiredHealthy=desired)) is charged
    )


@given(st.integers(-2, 5), st.integers(0, 2), st.integers(0, 3))
def test_a_charge_takes_one_or_nothing(allowed, generation, listed):
    disrupted = {f"x{n}": "2026-01-01T00:00:00Z" for n in range(listed)}
    before = budget(generation=generation, disruptionsAllowed=allowed, disruptedPods=disrupted)
    if generation > 1 or allowed <= 0:
        with pytest.raises((TooManyRequests, Forbidden)):
            charged_status(before, "web", 0.0)
        return
    after = charged_status(before, "web", 0.0)
    assert after["disruptionsAllowed"] == allowed - 1
    assert after["disruptedPods"] == {**disrupted, "web": "1970-01-01T00:00:00Z"}
    assert before["status"]["disruptionsAllowed"] == allowed


def test_too_many_evictions_that_nobody_has_seen_are_refused():
    many = {f"x{n}": "2026-01-01T00:00:00Z" for n in range(MOST_DISRUPTED + 1)}
    with pytest.raises(Forbidden, match="DisruptedPods map too big"):
        charged_status(budget(disruptionsAllowed=1, disruptedPods=many), "web", 0.0)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"currentHealthy": 1, "desiredHealthy": 2}, "needs 2 healthy pods and has 1 currently"),
        ({"currentHealthy": 3, "desiredHealthy": 2}, "does not allow evicting pods currently"),
        (
            {
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "SyncFailed",
                        "message": "no",
                    }
                ],
            },
            "does not allow evicting pods currently because it failed sync: no",
        ),
        (
            {
                "currentHealthy": 3,
                "desiredHealthy": 2,
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "Other",
                        "message": "no",
                    }
                ],
            },
            "does not allow evicting pods currently (Other): no",
        ),
    ],
)
def test_a_refusal_says_what_is_missing(status, why):
    with pytest.raises(TooManyRequests) as refused:
        charged_status(budget(disruptionsAllowed=0, **status), "web", 0.0)
    (cause,) = refused.value.details["causes"]
    assert cause["message"] == f"The disruption budget p {why}"

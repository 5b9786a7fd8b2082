"""When a volume grows on the node, and what the claim says of it."""

import pytest

from sampan.api.quantity import value_of
from sampan.kubelet.csi.csi_volume import CsiVolume
from sampan.kubelet.csi.expansion_rules import (
    NOT_REQUIRED,
    Expansion,
    expansion_of,
    may_have_grown,
    status_failed,
    status_finished,
    status_in_progress,
)


def volume(size="2Gi"):
    return {"spec": {"capacity": {"storage": size}}}


def claim(size="1Gi", asked="2Gi", modes=("ReadWriteOnce",), marks=(), **status):
    return {
        "metadata": {"annotations": dict.fromkeys(marks, "true")},
        "spec": {"accessModes": list(modes), "resources": {"requests": {"storage": asked}}},
        "status": {"capacity": {"storage": size}, **status},
    }


def resizing(step, size="2Gi"):
    return {
        "allocatedResources": {"storage": size},
        "allocatedResourceStatuses": {"storage": step} if step else {},
    }


@pytest.mark.parametrize(
    ("found", "expansion"),
    [
        (claim(), Expansion("2Gi", recovers=False)),
        (claim(**resizing("NodeResizePending")), Expansion("2Gi", True)),
        (claim(**resizing("NodeResizeInProgress")), Expansion("2Gi", True)),
        (claim(**resizing("NodeResizeInfeasible")), None),
        (claim(**resizing("ControllerResizeInProgress")), None),
        (claim(asked="3Gi", **resizing("NodeResizePending")),
         Expansion("2Gi", True, user_changed_mind=True)),
        (claim("2Gi", **resizing("")), None),
        (claim("2Gi", modes=("ReadWriteMany",), **resizing("")),
         Expansion("2Gi", True, is_told=True)),
        (claim("2Gi", modes=("ReadWriteMany",), marks=(NOT_REQUIRED,), **resizing("")), None),
    ],
)  # fmt: skip
def test_it_grows_when_the_resizer_is_done(found, expansion):
    assert expansion_of(volume(), found, value_of("1Gi")) == expansion


def test_a_volume_that_is_as_large_already_needs_nothing():
    assert expansion_of(volume(), claim(), value_of("2Gi")) is None
    held = CsiVolume("pv", "d", "h", capacity="2Gi", claimed="2Gi", claim=("ns", "c"))
    assert not may_have_grown(held)
    assert may_have_grown(CsiVolume("pv", "d", "h", capacity="2Gi", claimed="1Gi"))
    assert not may_have_grown(CsiVolume("v", "d", "h"))


def test_the_claim_follows():
    pending = {"type": "FileSystemResizePending", "status": "True"}
    other = {"type": "Odd", "status": "True"}
    found = claim(**resizing("NodeResizePending"), conditions=[pending, other])
    assert status_in_progress(found)["allocatedResourceStatuses"] == {
        "storage": "NodeResizeInProgress"
    }
    done = status_finished(found, "2Gi")
    assert done["capacity"] == {"storage": "2Gi"}
    assert done["allocatedResourceStatuses"] == {"storage": None}
    assert done["conditions"] == [other]


def test_a_failure_is_a_condition_and_may_be_for_good():
    found = claim(**resizing("NodeResizeInProgress"))
    failed = status_failed(found, "no room", "2026-01-01T00:00:00Z", infeasible=False)
    assert failed["allocatedResourceStatuses"] == {"storage": "NodeResizeInProgress"}
    assert failed["conditions"] == [
        {"type": "NodeResizeError", "status": "True",
         "message": "failed to expand pvc with no room",
         "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ]  # fmt: skip
    again = status_failed({**found, "status": failed}, "still", "later", infeasible=True)
    assert again["conditions"] == failed["conditions"]
    assert again["allocatedResourceStatuses"] == {"storage": "NodeResizeInfeasible"}

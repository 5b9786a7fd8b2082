import pytest

from sampan.kubelet.pods.planning.actions import Update
from sampan.kubelet.pods.planning.resizes import needs_restart, update_of
from tests.support.worlds.observed_pods import container

RUNS = container()


def resources(**amounts):
    """`limits_cpu="1"` and so on."""
    found: dict[str, dict[str, str]] = {}
    for name, amount in amounts.items():
        kind, _, what = name.partition("_")
        found.setdefault(kind, {})[what] = amount
    return found


@pytest.mark.parametrize(
    ("has", "wants", "expected"),
    [
        (resources(limits_cpu="1"), resources(limits_cpu="1000m"), None),
        (resources(limits_cpu="1"), resources(limits_cpu="2"), (0, 1)),
        (resources(limits_cpu="2"), resources(limits_cpu="1"), (0, -1)),
        (resources(requests_memory="1Gi"), resources(requests_memory="2Gi"), (1, 0)),
        # By the limit where both change, and each resource by itself.
        (
            resources(limits_cpu="2", requests_cpu="1", limits_memory="1Gi"),
            resources(limits_cpu="3", requests_cpu="500m", limits_memory="512Mi"),
            (-1, 1),
        ),
        (resources(), resources(limits_memory="1Gi"), (1, 0)),
    ],
)
def test_each_resource_grows_or_shrinks(has, wants, expected):
    """[N6]"""
    found = update_of({}, {"name": "main", "resources": wants}, RUNS, {RUNS.id: has})
    assert found == (Update("main-0", "main", *expected) if expected else None)


@pytest.mark.parametrize(
    ("policies", "update", "expected"),
    [
        ({}, (1, 1), False),
        ({"cpu": "RestartContainer"}, (1, 0), False),
        ({"cpu": "RestartContainer"}, (0, -1), True),
        ({"cpu": "NotRequired", "memory": "RestartContainer"}, (1, 1), True),
    ],
)
def test_only_a_change_of_what_says_so_restarts_it(policies, update, expected):
    """[N6]"""
    listed = [{"resourceName": name, "restartPolicy": policy} for name, policy in policies.items()]
    assert needs_restart({"resizePolicy": listed}, Update("a", "b", *update)) is expected

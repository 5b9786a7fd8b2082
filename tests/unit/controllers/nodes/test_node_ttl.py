import pytest

from sampan.controllers.actions import NOTHING
from sampan.controllers.nodes.node_ttl import ANNOTATION, STEPS, next_step, plan


@pytest.mark.parametrize(
    ("counts", "ttl_seconds"),
    [
        ([1], 0),
        ([100], 0),
        ([101], 15),
        ([101, 95], 15),  # not at once back
        ([101, 89], 0),
        ([600], 30),
        ([5000], 300),
        ([5000, 1801], 300),
        ([5000, 1], 0),
    ],
)
def test_the_more_nodes_the_longer_they_keep_what_they_read(counts, ttl_seconds):
    step = 0
    for count in counts:
        step = next_step(step, count)
    assert STEPS[step].ttl_seconds == ttl_seconds


def test_a_node_is_written_once():
    node = {"metadata": {"name": "n", "uid": "u"}}
    [patch] = plan(node, 15).actions
    assert patch.patch["metadata"]["annotations"] == {ANNOTATION: "15"}
    node["metadata"]["annotations"] = patch.patch["metadata"]["annotations"]
    assert plan(node, 15) is NOTHING

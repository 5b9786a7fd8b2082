"""What a Node's status may say, beside what the schema knows: as an original API server has it."""

import pytest

from sampan.api.resources import NODES
from sampan.api.validation import validate_create, validate_status_update

CASES = [
    ({"nodeInfo": {"swap": {"capacity": 0}}}, "metadata.nodeSwapStatus.capacity"),
    ({"nodeInfo": {"swap": {"capacity": -1}}}, "metadata.nodeSwapStatus.capacity"),
    ({"capacity": {"cpu": "-1"}}, "status.capacity.cpu"),
    ({"allocatable": {"e.com/dongle": "1500m"}}, "status.allocatable.e.com/dongle"),
]


@pytest.mark.parametrize(("status", "field"), CASES)
def test_a_status_that_cannot_be_is_refused(status, field):
    old = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x", "resourceVersion": "1"}}
    errors = validate_status_update(NODES, {**old, "status": status}, old)
    assert [one.field for one in errors] == [field]


def test_a_node_registers_with_its_swap_or_without():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    for swap, wrong in (({"swap": {"capacity": 1024}}, 0), ({}, 0), ({"swap": {"capacity": 0}}, 1)):
        errors = validate_create(NODES, {**node, "status": {"nodeInfo": swap}})
        assert len(errors) == wrong

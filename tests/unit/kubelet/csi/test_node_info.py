"""CSINode and the marks of the Node."""

import json

import pytest

from sampan.api.rules.storage import MIGRATED_PLUGINS
from sampan.kubelet.csi.node_info import (
    MIGRATED,
    NODE_ID_ANNOTATION,
    DriverNode,
    TopologyCollision,
    is_owned_by,
    new_csi_node,
    node_patch_with,
    node_patch_without,
    with_driver,
    with_marks,
    without_driver,
)

SAID = DriverNode("a.example.com", "node-a", 5, {"zone": "z1"})


def node(**meta):
    return {"metadata": {"name": "n", "resourceVersion": "7", **meta}}


def test_an_empty_csi_node_belongs_to_its_node():
    made = new_csi_node("n", "u1")
    assert made["spec"] == {"drivers": []}
    assert made["metadata"]["annotations"] == {MIGRATED_PLUGINS: MIGRATED}
    assert is_owned_by(made, "n", "u1")
    assert not is_owned_by(made, "n", "u2")
    assert with_marks(made) is None
    assert with_marks({"metadata": {}, "spec": {}})["metadata"]["annotations"]


def test_a_driver_is_added_once_and_changed_where_it_says_something_else():
    made = with_driver(new_csi_node("n", "u1"), SAID)
    assert made["spec"]["drivers"] == [
        {"name": "a.example.com", "nodeID": "node-a", "topologyKeys": ["zone"],
         "allocatable": {"count": 5}}
    ]  # fmt: skip
    assert with_driver(made, SAID) is None
    more = with_driver(made, DriverNode("b.example.com", "node-b"))
    assert [item["name"] for item in more["spec"]["drivers"]] == ["a.example.com", "b.example.com"]
    fewer = with_driver(more, DriverNode("a.example.com", "node-a", 4, {"zone": "z1"}))
    assert [item["name"] for item in fewer["spec"]["drivers"]] == ["b.example.com", "a.example.com"]
    assert fewer["spec"]["drivers"][1]["allocatable"] == {"count": 4}


def test_a_driver_goes_and_the_others_stay():
    both = with_driver(with_driver(new_csi_node("n", "u"), SAID), DriverNode("b", "x"))
    assert [item["name"] for item in without_driver(both, "a.example.com")["spec"]["drivers"]] == [
        "b"
    ]
    assert without_driver(both, "c") is None


def test_a_limit_larger_than_the_field_is_cut():
    made = with_driver(new_csi_node("n", "u"), DriverNode("a", "x", 2**40))
    assert made["spec"]["drivers"][0]["allocatable"] == {"count": 2**31 - 1}


def test_the_node_is_marked_with_id_and_topology_and_unmarked():
    patch = node_patch_with(node(), SAID)
    assert patch == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {NODE_ID_ANNOTATION: '{"a.example.com":"node-a"}'},
            "labels": {"zone": "z1"},
        }
    }
    ids = json.dumps({"a.example.com": "node-a", "b": "x"})
    marked = node(annotations={NODE_ID_ANNOTATION: ids}, labels={"zone": "z1"})
    assert node_patch_with(marked, SAID) is None
    left = node_patch_without(marked, "a.example.com")["metadata"]["annotations"]
    assert left == {NODE_ID_ANNOTATION: '{"b":"x"}'}
    last = node(annotations={NODE_ID_ANNOTATION: '{"b":"x"}'})
    assert node_patch_without(last, "b")["metadata"]["annotations"] == {NODE_ID_ANNOTATION: None}
    assert node_patch_without(node(), "b") is None


def test_a_driver_that_contradicts_a_label_is_refused():
    with pytest.raises(TopologyCollision) as refused:
        node_patch_with(node(labels={"zone": "z2"}), SAID)
    assert str(refused.value) == (
        'detected topology value collision: driver reported "zone":"z1" but existing label is '
        '"zone":"z2"'
    )

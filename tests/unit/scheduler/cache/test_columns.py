from dataclasses import replace

import numpy as np
import pytest

from sampan.scheduler.cache.columns import MOST_LAZY, MOST_TOUCHED, Columns, Touched
from sampan.scheduler.model.arrays import ABSENT
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.requests import Usage


def node(name, labels=None, cpu=1000, images=None):
    return NodeInfo(name, {"cpu": cpu}, 110, labels or {}, frozenset(), False, images or {})


def test_what_a_snapshot_shows_cannot_be_written():
    columns = Columns(tuple)
    columns.put_node(node("a"), ())
    nodes = columns.snapshot()
    for column in (nodes.pods, nodes.allocatable["cpu"], nodes.unschedulable, nodes.label("x")):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_snapshot_is_taken_anew_when_nodes_change_and_shows_pods_at_once():
    columns = Columns(tuple)
    columns.put_node(node("a"), ())
    first = columns.snapshot()
    columns.add("a", AssignedPod(Usage((("cpu", 5),), 5, 0)))
    assert columns.snapshot() is first
    assert first.requested["cpu"].tolist() == [5]
    columns.put_node(node("b"), ())
    assert len(columns.snapshot()) == 2


def test_resources_that_only_pods_name_take_no_room():
    columns = Columns(tuple)
    columns.put_node(node("a"), ())
    before = columns.snapshot()
    many = tuple((f"example.com/{number}", 1) for number in range(1000))
    columns.add("a", AssignedPod(Usage(many, 5, 0)))
    assert columns.snapshot() is before
    assert list(before.requested) == ["cpu"]


def test_what_was_touched_is_known_for_a_while():
    touched = Touched()
    start = touched.position
    touched.add(3)
    touched.add(4)
    assert touched.since(start) == [3, 4]
    assert touched.since(touched.position) == []
    middle = touched.position
    touched.add(9)
    touched.forget_since(middle)
    assert touched.since(start) == [3, 4]
    for _ in range(MOST_TOUCHED):
        touched.add(1)
    assert touched.since(start) is None


def test_columns_grow_and_shrink_with_the_nodes():
    columns = Columns(tuple)
    for number in range(100):
        columns.put_node(node(f"n{number}", {"zone": str(number % 3)}, cpu=number), ())
        if number == 50:
            columns.snapshot().label("zone")
            columns.snapshot().image_bytes("web")
    for number in range(0, 100, 2):
        columns.remove_node(f"n{number}", ())
    nodes = columns.snapshot()
    assert len(nodes) == 50
    assert sorted(nodes.allocatable["cpu"].tolist()) == list(range(1, 100, 2))
    for at, row in enumerate(nodes.rows):
        assert nodes.at[row.name] == at
        assert nodes.allocatable["cpu"][at] == int(row.name[1:])
        assert nodes.label("zone")[at] == nodes.label_value(row.labels["zone"])


def test_a_label_column_follows_its_nodes():
    columns = Columns(tuple)
    columns.put_node(node("a", {"zone": "x"}), ())
    columns.put_node(node("b"), ())
    zone = columns.snapshot().label("zone")
    assert zone.tolist() == [columns.snapshot().label_value("x"), ABSENT]
    columns.put_node(node("b", {"zone": "x"}), ())
    columns.put_node(node("a"), ())
    nodes = columns.snapshot()
    assert nodes.label("zone").tolist() == [ABSENT, nodes.label_value("x")]


def test_the_columns_that_pods_ask_for_are_bounded():
    columns = Columns(tuple)
    columns.put_node(node("a", {f"key-{number}": "v" for number in range(MOST_LAZY * 2)}), ())
    columns.put_node(node("b"), ())
    for number in range(MOST_LAZY * 2):
        assert columns.snapshot().label(f"key-{number}").tolist()[1] == ABSENT
    assert len(list(columns._label_columns.arrays())) == MOST_LAZY


def test_of_labels_that_no_node_has_nothing_is_kept():
    columns = Columns(tuple)
    columns.put_node(node("a", {"zone": "z"}), ())
    for number in range(100):
        assert columns.snapshot().label(f"key-{number}").tolist() == [ABSENT]
        assert not columns.snapshot().has_label(f"key-{number}")
    assert list(columns._label_columns.arrays()) == []
    assert columns.snapshot().has_label("zone")
    columns.remove_node("a", ())
    assert not columns.snapshot().has_label("zone")


def test_label_values_of_nodes_long_gone_are_forgotten():
    columns = Columns(tuple)
    for number in range(10_000):
        columns.put_node(node(f"n{number}", {"host": f"n{number}"}), ())
        columns.snapshot().label("host")
        if number:
            columns.remove_node(f"n{number - 1}", ())
    nodes = columns.snapshot()
    assert nodes.label("host")[0] == nodes.label_value("n9999")
    assert len(columns._labels._texts) < 5000


def test_a_resource_that_only_a_pod_knows_is_no_column_before_a_node_has_it():
    there = AssignedPod(Usage((("example.com/gpu", 2),), 0, 0))
    columns = Columns(lambda: [("a", there)])
    columns.put_node(node("a"), [there])
    assert "example.com/gpu" not in columns.snapshot().requested
    columns.put_node(replace(node("a"), allocatable={"example.com/gpu": 4}), ())
    nodes = columns.snapshot()
    assert nodes.requested["example.com/gpu"].tolist() == [2]
    assert nodes.allocatable["example.com/gpu"].tolist() == [4]
    assert nodes.pods.dtype == np.int64

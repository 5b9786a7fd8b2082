from sampan.scheduler.decision.decide import Chosen, Refused
from sampan.scheduler.decision.decision_records import (
    BEST,
    MOST_NAMED,
    MOST_RECORDS,
    Record,
    Records,
    best_of,
    record_object,
    refusing,
)
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import snapshot_of


def row(name="p", **spec):
    meta = {"name": name, "uid": name, "namespace": "default"}
    return pod_info_of({"metadata": meta, "spec": {"containers": [{"name": "c"}], **spec}})


def nodes(count, **spec):
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    those = [
        {"metadata": {"name": f"n{at}"}, "spec": spec, "status": {"allocatable": amounts}}
        for at in range(count)
    ]
    return snapshot_of((those, {}))


def test_the_newest_decision_of_a_pod_is_kept_and_the_oldest_pods_are_forgotten():
    """[X2]"""
    records = Records()
    for number in range(MOST_RECORDS + 5):
        records.put(Record(0.0, row(f"p{number}"), Chosen("n", 1, 1), {}, ()))
    records.put(Record(7.0, row("p100"), Chosen("m", 1, 1), {}, ()))
    assert len(records) == MOST_RECORDS
    assert records.get("default/p0") is None
    assert records.get("default/p100").when == 7.0


def test_each_node_is_named_once_under_the_rule_that_refused_it():
    there = nodes(MOST_NAMED + 3, unschedulable=True)
    found = refusing(row(nodeSelector={"a": "b"}), there, DEFAULT_PROFILE)
    assert list(found) == ["NodeUnschedulable"]
    assert len(found["NodeUnschedulable"]) == MOST_NAMED + 1
    assert found["NodeUnschedulable"][-1] == "…"


def test_the_best_ten_with_their_points_by_rule():
    found = best_of(row(), nodes(12), DEFAULT_PROFILE)
    assert len(found) == BEST
    _, total, by_rule = found[0]
    assert total == sum(by_rule.values())
    assert best_of(row(nodeSelector={"a": "b"}), nodes(2), DEFAULT_PROFILE) == ()


def test_a_record_becomes_json():
    chosen = record_object(Record(0.0, row(), Chosen("n", 9, 3), {}, (("n", 9, {"A": 9}),)))
    assert chosen["chosen"] == {"node": "n", "points": 9, "feasibleNodes": 3}
    assert chosen["best"] == [{"node": "n", "points": 9, "byRule": {"A": 9}}]
    refused = record_object(Record(0.0, row(), Refused(4, ()), {"A": ("n",)}, (), "no"))
    assert (refused["message"], refused["nodes"], refused["refused"]) == ("no", 4, {"A": ["n"]})

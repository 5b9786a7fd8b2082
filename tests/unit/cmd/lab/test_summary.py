"""What a record says: totals, waits, use, fates."""

from sampan.cmd.lab.summary import percentile, report_of
from tests.support.generators.lab_records import life, record


def test_a_report_counts_fates_and_waits():
    report = report_of(record(), "default")
    assert report["totals"]["pods"] == 4
    assert (report["totals"]["succeeded"], report["totals"]["pending"]) == (2, 1)
    assert report["waits"] == {"mean": 10, "p50": 10, "p95": 20, "max": 20}
    assert report["preemptions"] == [
        {"at": 50, "victim": "c", "node": "n-1", "by": "a", "ran": 40},
    ]  # fmt: skip
    assert report["pending"] == [{"why": "Insufficient cpu", "count": 1, "pods": ["d"]}]


def test_use_is_of_what_there_is_over_the_whole_time():
    report = report_of(record(), "default")
    assert report["utilisation"] == {"cpu": 0.25}
    assert report["peak"] == {"cpu": 0.5}
    assert [node["utilisation"]["cpu"] for node in report["nodes"]] == [0.5, 0.0]
    first, last = report["timeline"][0], report["timeline"][-1]
    assert (first["at"], last["at"], last["used"]["cpu"]) == (0, 100, 0)


def test_streams_say_where_their_pods_went():
    [stream] = report_of(record(), "default")["streams"]
    assert stream["types"] == {"large": 3}
    assert stream["zones"] == {"a": 2, "b": 1}


def test_plugins_are_in_the_order_of_their_cost():
    costs = report_of(record(), "default")["plugins"]
    assert [(cost["plugin"], cost["point"]) for cost in costs] == [
        ("NodeResourcesFit", "Filter"), ("NodeName", "Filter"),
    ]  # fmt: skip


def test_nothing_at_all_is_a_report_too():
    empty = {"seed": 0, "seconds": 0.0, "pods": [], "nodes": [], "moments": [], "refused": ["no"],
             "plugins": {}}  # fmt: skip
    report = report_of(empty, "t")
    assert report["totals"] == {"pods": 0, "succeeded": 0, "running": 0, "pending": 0, "failed": 0,
                                "preempted": 0, "deleted": 0, "refused": 1}  # fmt: skip
    assert report_of({**empty, "pods": [life("x")]}, "t")["utilisation"] == {}


def test_percentiles():
    assert percentile([], 0.5) == 0
    assert percentile([1, 2, 3, 4], 0.5) == 3
    assert percentile([1, 2, 3, 4], 0.99) == 4

import pytest

from sampan.client.event_correlation import (
    BURST,
    COMBINED,
    REFILL_SECONDS,
    REMEMBERED,
    SIMILAR_SECONDS,
    EventCorrelator,
)


def event(message="m", reason="Started", name="pod", event_name="pod.1"):
    return {
        "metadata": {"name": event_name, "namespace": "ns"},
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": name, "uid": "u"},
        "source": {"component": "kubelet", "host": "n1"},
        "type": "Normal",
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def test_the_same_event_is_counted_up_under_its_first_name():
    correlator = EventCorrelator()
    correlator.correlate(event(event_name="pod.1"), 0)
    write = correlator.correlate(event(event_name="pod.2"), 1)
    assert (write.event["count"], write.event["metadata"]["name"]) == (2, "pod.1")


def test_different_messages_are_different_events():
    correlator = EventCorrelator()
    correlator.correlate(event("a"), 0)
    assert correlator.correlate(event("b"), 1).event["count"] == 1


def test_many_similar_events_are_combined_into_one():
    correlator = EventCorrelator()
    writes = [correlator.correlate(event(f"message {n}"), n) for n in range(12)]
    assert [write.event["count"] for write in writes] == [1] * 10 + [2, 3]
    assert writes[8].event["message"] == "message 8"
    assert writes[9].event["message"] == COMBINED + "message 9"
    assert writes[9].key == writes[11].key


def test_similar_events_far_apart_are_not_combined():
    correlator = EventCorrelator()
    for n in range(30):
        write = correlator.correlate(event(f"message {n}"), n * 601)
        assert write.event["message"] == f"message {n}"


def test_one_object_gets_a_burst_and_then_one_event_in_five_minutes():
    correlator = EventCorrelator()
    allowed = [correlator.correlate(event(), 0) is not None for _ in range(BURST + 5)]
    assert allowed == [True] * BURST + [False] * 5
    assert correlator.correlate(event(name="other"), 0) is not None
    assert correlator.correlate(event(), REFILL_SECONDS - 1) is None
    assert correlator.correlate(event(), REFILL_SECONDS + 1) is not None


@pytest.mark.slow
def test_memory_is_bounded():
    correlator = EventCorrelator()
    for n in range(REMEMBERED + 10):
        correlator.correlate(event(name=f"pod{n}"), n / 1000)
    for memory in (correlator._similar, correlator._written, correlator._buckets):
        assert len(memory) == REMEMBERED


def test_what_is_so_old_that_it_makes_no_difference_is_forgotten():
    correlator = EventCorrelator()
    for n in range(100):
        correlator.correlate(event(name=f"pod{n}"), n)
    correlator.correlate(event(name="late"), SIMILAR_SECONDS + 50.5)
    assert len(correlator._similar) == 50, "49 were heard of within ten minutes, and the last one"
    assert len(correlator._buckets) == 1, "after five minutes all were full again"
    for _ in range(BURST):
        correlator.correlate(event(name="spam"), 2000)
    assert correlator.correlate(event(name="spam"), 2000 + REFILL_SECONDS - 1) is None

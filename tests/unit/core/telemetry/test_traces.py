from sampan.core.telemetry.traces import MOST_SPANS, NO_MARKS, NO_TRACES, Span, Traces
from sampan.testing.manual_clock import ManualClock


def test_spans_of_an_object_come_in_order_and_parts_know_their_whole():
    clock = ManualClock()
    traces = Traces(clock)
    began = clock.now()
    traces.span("u", "scheduler", "queue", began, attempt="1")
    marks = traces.marks()
    marks.at("decoding")
    marks.at("store commit")
    traces.request("u", "apiserver", "create pods", marks)
    found = traces.of("u")
    assert found is not None
    assert [span.name for span in found.spans] == [
        "queue",
        "create pods",
        "decoding",
        "store commit",
    ]
    assert [span.parent for span in found.spans] == [-1, -1, 1, 1]
    assert found.spans[0].facts == {"attempt": "1"}


def test_the_oldest_trace_makes_room():
    traces = Traces(ManualClock(), most=3)
    for number in range(10):
        traces.span_for(f"u{number}", "kubelet", "sync pod", 0.1)
    assert traces.of("u6") is None
    assert traces.of("u7") is not None
    assert traces.forgotten == 7


def test_a_full_trace_takes_no_more_and_says_how_many_came():
    traces = Traces(ManualClock())
    for _ in range(MOST_SPANS + 5):
        traces.span_for("u", "kubelet", "sync pod", 0.1)
    found = traces.of("u")
    assert found is not None
    assert (len(found.spans), found.dropped) == (MOST_SPANS, 5)


def test_nothing_is_kept_where_tracing_is_off():
    NO_TRACES.span("u", "kubelet", "sync pod", 0.0)
    NO_TRACES.add("u", Span("kubelet", "sync pod", 0.0, 1.0))
    marks = NO_TRACES.marks()
    marks.at("decoding")
    NO_TRACES.request("u", "apiserver", "create pods", marks)
    assert marks is NO_MARKS
    assert not marks.steps
    assert NO_TRACES.of("u") is None

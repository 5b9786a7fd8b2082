from sampan.core.telemetry.spans import NO_MARKS, Span
from sampan.core.telemetry.traces import MOST_SPANS, NO_TRACES, Traces
from tests.support.generators.traced_requests import say_pod_create
from tests.support.manual_clock import ManualClock


def test_spans_of_an_object_come_in_order_and_parts_know_their_whole():
    clock = ManualClock()
    traces = Traces(clock)
    began = clock.now()
    traces.span("u", "scheduler", "queue", began, attempt="1")
    marks = traces.marks()
    marks.at("decoding")
    marks.at("store commit")
    traces.request("u", say_pod_create(marks))
    found = traces.of("u")
    assert found is not None
    assert [span.name for span in found.spans] == [
        "queue",
        "create pods",
        "decoding",
        "store commit",
        "response",
    ]
    assert [span.parent for span in found.spans] == [-1, -1, 1, 1, 1]
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
    NO_TRACES.request("u", marks)
    assert marks is NO_MARKS
    assert marks == []
    assert NO_TRACES.of("u") is None


def test_of_a_full_trace_the_beginning_and_the_newest_requests_stay():
    clock = ManualClock()
    traces = Traces(clock)
    for number in range(40):
        marks = say_pod_create(traces.marks(str(number)))
        for _ in range(10):
            marks.at("step")
        traces.request("u", marks)
    found = traces.of("u")
    assert found is not None
    ids = [span.facts["audit-id"] for span in found.spans if "audit-id" in span.facts]
    assert ids == [*map(str, range(16)), *map(str, range(35, 40))]
    assert len(found.spans) + found.dropped == 40 * 12
    assert len(found.spans) <= MOST_SPANS


def test_names_are_found_while_their_traces_are_kept():
    traces = Traces(ManualClock(), most=3)
    for uid, name in (("u1", "web"), ("u2", "db"), ("u3", "web")):
        traces.request(uid, say_pod_create(traces.marks(), name))
    traces.span("u3", "kubelet", "sync pod", 0.0)
    assert traces.of_name("pods", "default", "web") == {("pods", "default", "web"): ["u3", "u1"]}
    traces.span("u4", "kubelet", "sync pod", 0.0)  # nobody has said what it is
    assert [*traces.of_name("pods", "default").values()] == [["u2"], ["u3"]]
    assert traces.of_name("pods", "elsewhere") == {}

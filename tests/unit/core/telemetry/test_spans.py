"""What a request notes, as spans."""

import asyncio

from sampan.core.telemetry.spans import NO_MARKS, spread
from sampan.core.telemetry.traces import Traces
from tests.support.generators.traced_requests import say_pod_create
from tests.support.manual_clock import ManualClock


def test_steps_follow_each_other_without_gaps_until_the_answer():
    async def scenario():
        clock = ManualClock()
        traces = Traces(clock)
        began = clock.now()
        marks = traces.marks("id-1")
        for step in ("decoding", "store commit"):
            await clock.advance(0.1)
            marks.at(step)
        await clock.advance(0.3)
        traces.request("u", say_pod_create(marks))
        [whole, *parts] = spread(marks, 7)
        assert (whole.began, whole.ended) == (began, clock.now())
        assert [part.began for part in parts] == [began, parts[0].ended, parts[1].ended]
        assert (parts[-1].name, parts[-1].ended) == ("response", clock.now())
        assert {part.parent for part in parts} == {7}
        assert whole.facts == {"user": "admin", "audit-id": "id-1", "phase": "Pending"}
        assert marks.size == len(parts) + 1

    asyncio.run(scenario())


def test_a_request_without_steps_has_no_parts():
    traces = Traces(ManualClock())
    marks = say_pod_create(traces.marks())
    traces.request("u", marks)
    assert [span.name for span in spread(marks, 0)] == ["create pods"]
    assert marks.size == 1


def test_what_was_refused_ends_with_the_refusal():
    traces = Traces(ManualClock())
    marks = say_pod_create(traces.marks("id-1"))
    marks.at("decoding")
    marks.facts["error"] = "no"
    trace = traces.lone_request(marks)
    assert [span.name for span in trace.spans] == ["create pods", "decoding", "refused"]
    assert trace.begun_as == marks.trace_id != ""


def test_marks_of_what_nobody_traces_keep_nothing():
    NO_MARKS.at("decoding")
    assert NO_MARKS == []
    assert NO_MARKS.header() == ""

"""W3C trace context: what is read, what is written, and whose step it is."""

import asyncio

import pytest

from sampan.core.telemetry import trace_context
from sampan.core.telemetry.trace_context import parse, span_id_of, trace_id_of
from sampan.core.telemetry.traces import Traces
from tests.support.manual_clock import ManualClock

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_what_is_written_is_read_again():
    found = parse(trace_context.header_of(TRACE, SPAN))
    assert found == (TRACE, SPAN, True)
    assert parse(f"00-{TRACE}-{SPAN}-00") == (TRACE, SPAN, False)
    assert parse(f"cc-{TRACE}-{SPAN}-01-what-the-future-brings") == (TRACE, SPAN, True)


@pytest.mark.parametrize(
    "header",
    [
        "", "00", f"ff-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-more", f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[1:]}-{SPAN}-01", f"00-{TRACE}-{SPAN}-0g", f"cc-{TRACE}-{SPAN}-01-" + "x" * 999,
        f"00-{TRACE}-{SPAN}-01\r\nx: y",
    ],
)  # fmt: skip
def test_what_is_no_header_is_as_none(header):
    assert parse(header) is None


def test_ids_have_their_length_and_come_again():
    assert trace_id_of("0af76519-16cd-43dd-8448-eb211c80319c") == TRACE
    assert len(trace_id_of("static pod of a file")) == 32
    assert span_id_of("u", "kubelet", "start", 1.5) == span_id_of("u", "kubelet", "start", 1.5)
    assert len(span_id_of("u", "kubelet", "start", 1.5)) == 16
    assert span_id_of("u", "kubelet", "start", 1.5) != span_id_of("u", "kubelet", "start", 2.5)


def test_a_step_that_is_under_way_is_known_to_what_it_calls():
    traces, seen = Traces(ManualClock()), []

    async def work():
        seen.append(trace_context.current_header())
        assert trace_context.current_uid() == "u"
        trace_context.note("bytes", "7")

    asyncio.run(traces.timed("u", "kubelet", "image of main", work()))
    assert trace_context.current_uid() == ""
    [span] = traces.of("u").spans
    assert span.facts == {"bytes": "7"}
    own = span_id_of("u", "kubelet", "image of main", span.began)
    assert seen == [trace_context.header_of(trace_id_of("u"), own)]
    assert trace_context.current_header() == ""
    trace_context.note("nobody", "listens")


def test_a_step_that_fails_says_what_with():
    traces = Traces(ManualClock())

    async def work():
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        asyncio.run(traces.timed("u", "kubelet", "volumes", work()))
    assert traces.of("u").spans[0].facts == {"error": "no space left"}


def test_a_step_costs_and_says_nothing_where_tracing_is_off():
    traces, seen = Traces(ManualClock(), most=0), []

    async def work():
        seen.append(trace_context.current_header())
        return 5

    assert asyncio.run(traces.timed("u", "kubelet", "volumes", work())) == 5
    assert seen == [""]

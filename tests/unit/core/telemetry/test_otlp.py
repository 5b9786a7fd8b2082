"""Spans in OpenTelemetry's form."""

import json
from uuid import UUID

from sampan.core.telemetry.otlp import MILLION, is_sampled, request_of
from sampan.core.telemetry.traces import Outbox, Traces
from tests.support.generators.traced_requests import say_pod_create
from tests.support.manual_clock import ManualClock

UID = "0af76519-16cd-43dd-8448-eb211c80319c"


def exported(fill):
    clock = ManualClock()
    traces, outbox = Traces(clock), Outbox()
    traces.export_to(outbox)
    fill(traces)
    made = request_of(outbox.take(), {UID: traces.id_of(UID)})
    found = {}
    for group in json.loads(json.dumps(made))["resourceSpans"]:
        [service] = group["resource"]["attributes"]
        assert service["key"] == "service.name"
        for span in group["scopeSpans"][0]["spans"]:
            found[span["name"]] = (service["value"]["stringValue"], span)
    return found


def test_spans_have_ids_parents_times_and_what_is_known_of_them():
    def fill(traces):
        marks = traces.marks()
        marks.at("decoding")
        traces.request(UID, say_pod_create(marks))
        traces.span_for(UID, "kubelet", "sync pod", 0.25, error="no sandbox")

    found = exported(fill)
    lane, whole = found["create pods"]
    assert (lane, whole["traceId"], whole["kind"]) == ("apiserver", UID.replace("-", ""), 2)
    assert "parentSpanId" not in whole
    assert found["decoding"][1]["parentSpanId"] == whole["spanId"]
    lane, sync = found["sync pod"]
    assert (lane, sync["kind"], sync["status"]) == (
        "kubelet", 1, {"code": 2, "message": "no sandbox"},
    )  # fmt: skip
    taken = int(sync["endTimeUnixNano"]) - int(sync["startTimeUnixNano"])
    assert abs(taken - 250_000_000) < 1000
    assert {len(span["spanId"]) for _, span in found.values()} == {16}


def test_what_a_caller_began_goes_on_under_the_caller_s_ids():
    def fill(traces):
        from sampan.core.telemetry.trace_context import TraceContext

        marks = traces.marks()
        marks.continue_from(TraceContext("f" * 32, "e" * 16, True))
        header = marks.header()
        assert header.startswith(f"00-{'f' * 32}-")
        assert header == marks.header()
        traces.request(UID, say_pod_create(marks))
        traces.span_for(UID, "kubelet", "sync pod", 0.1)

    found = exported(fill)
    assert {span["traceId"] for _, span in found.values()} == {"f" * 32}
    assert found["create pods"][1]["parentSpanId"] == "e" * 16
    told = {item["key"] for _, span in found.values() for item in span["attributes"]}
    assert told == {"k8s.object.uid", "user", "phase"}


def test_a_share_of_the_traces_is_sampled_the_same_everywhere():
    # Uids have digits that are the same for all: those must not decide.
    ids = [UUID(int=number << 64 | number, version=4).hex for number in range(1, 4001)]
    share = sum(is_sampled(item, 250_000) for item in ids) / len(ids)
    assert 0.2 < share < 0.3
    assert all(is_sampled(item, MILLION) for item in ids)
    assert not any(is_sampled(item, 0) for item in ids)

"""OTLP in protobuf, read by OpenTelemetry's own messages."""

import base64
import json

from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sampan.core.telemetry.otlp import request_of
from sampan.core.telemetry.otlp_wire import encode
from sampan.core.telemetry.spans import TOP, Span

UID = "0af76519-16cd-43dd-8448-eb211c80319c"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=4)), max_size=5))
def test_it_says_what_the_json_says(given_spans):
    spans = [Span("kubelet", "sync pod", 1.5, 2.25, TOP, {"error": "no"})]
    spans += [Span(lane, name, 1e9, 2e9, 0, facts) for lane, name, facts in given_spans]
    request = request_of([(UID, spans)], {})
    read = ExportTraceServiceRequest.FromString(encode(request))
    for group in request["resourceSpans"]:
        for span in group["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:  # JSON has bytes in base64 everywhere but here
                    span[key] = _base64(span[key])
    expected = json_format.Parse(json.dumps(request), ExportTraceServiceRequest())
    assert read == expected


def _base64(digits):
    return base64.b64encode(bytes.fromhex(digits)).decode()

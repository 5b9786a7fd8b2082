"""Spans as OpenTelemetry's protocol has them in JSON (OTLP/HTTP). Pure.

Job: spans of objects → an ExportTraceServiceRequest; which traces are sampled.
Invariant: a span has the same ids whenever and by whomever it is exported.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sampan.core.telemetry.spans import PARENT_ID, SPAN_ID, TOP, TRACE_ID, Span
from sampan.core.telemetry.trace_context import span_id_of, trace_id_of

MILLION = 1_000_000
_SERVER, _INTERNAL = 2, 1  # kinds of spans
_ERROR = 2  # a status
_IDS = frozenset({TRACE_ID, SPAN_ID, PARENT_ID})


def is_sampled(trace_id: str, per_million: int) -> bool:
    """Of so many traces in a million, the same ones in every process."""
    # Not the digits as they are: those of a uid are not all random.
    return hash_of(trace_id) % MILLION < per_million


def hash_of(trace_id: str) -> int:
    from hashlib import blake2b

    return int.from_bytes(blake2b(trace_id.encode(), digest_size=8).digest())


def request_of(noted: Iterable[tuple[str, Sequence[Span]]], ids: Mapping[str, str]) -> Any:
    """`noted`: by uid, each with its parts; `ids`: the traces' own, where that is not the uid."""
    by_lane: dict[str, list[Any]] = {}
    for uid, spans in noted:
        trace_id = ids.get(uid) or trace_id_of(uid)
        own = [_id(uid, span) for span in spans]
        for at, span in enumerate(spans):
            whole = spans[span.parent] if span.parent != TOP else span
            parent = own[span.parent] if span.parent != TOP else span.facts.get(PARENT_ID, "")
            found = whole.facts.get(TRACE_ID, trace_id)
            by_lane.setdefault(span.lane, []).append(_span(span, found, own[at], parent, uid))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", lane)]},
                "scopeSpans": [{"scope": {"name": "sampan"}, "spans": spans}],
            }
            for lane, spans in by_lane.items()
        ]
    }


def _id(uid: str, span: Span) -> str:
    return span.facts.get(SPAN_ID) or span_id_of(uid, span.lane, span.name, span.began)


def _span(span: Span, trace_id: str, span_id: str, parent: str, uid: str) -> Any:
    facts = {key: value for key, value in span.facts.items() if key not in _IDS}
    is_request = span.parent == TOP and "user" in facts
    made: dict[str, Any] = {
        "traceId": trace_id, "spanId": span_id, "name": span.name,
        "kind": _SERVER if is_request else _INTERNAL,
        "startTimeUnixNano": str(round(1e9 * span.began)),
        "endTimeUnixNano": str(round(1e9 * span.ended)),
        "attributes": [_attribute("k8s.object.uid", uid), *map(_attribute, facts, facts.values())],
    }  # fmt: skip
    if parent:
        made["parentSpanId"] = parent
    if "error" in facts:
        made["status"] = {"code": _ERROR, "message": facts["error"]}
    return made


def _attribute(key: str, value: str) -> Any:
    return {"key": key, "value": {"stringValue": value}}

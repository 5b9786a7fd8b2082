"""An ExportTraceServiceRequest in protobuf's wire format, as OTLP over gRPC has it. Pure.

Job: what otlp.request_of makes, field by field by its number. There are ten kinds of message in it
    and they never change: that is no reason to load descriptors.
"""

import struct
from collections.abc import Iterator
from typing import Any

from sampan.core.protobuf_wire import FIXED64, bytes_field, tag, varint_field

_STATUS_MESSAGE, _STATUS_CODE = 2, 3


def encode(request: Any) -> bytes:
    return b"".join(_nested(1, _resource_spans(group)) for group in request["resourceSpans"])


def _resource_spans(group: Any) -> Iterator[bytes]:
    yield _nested(1, (_attribute(1, item) for item in group["resource"]["attributes"]))
    for scope in group["scopeSpans"]:
        yield _nested(2, _scope_spans(scope))


def _scope_spans(scope: Any) -> Iterator[bytes]:
    yield _nested(1, (_text(1, scope["scope"]["name"]),))
    for span in scope["spans"]:
        yield _nested(2, _span(span))


def _span(span: Any) -> Iterator[bytes]:
    yield bytes_field(1, bytes.fromhex(span["traceId"]))
    yield bytes_field(2, bytes.fromhex(span["spanId"]))
    if "parentSpanId" in span:
        yield bytes_field(4, bytes.fromhex(span["parentSpanId"]))
    yield _text(5, span["name"])
    yield varint_field(6, span["kind"])
    yield _moment(7, span["startTimeUnixNano"])
    yield _moment(8, span["endTimeUnixNano"])
    for item in span["attributes"]:
        yield _attribute(9, item)
    if "status" in span:
        status = span["status"]
        parts = (
            _text(_STATUS_MESSAGE, status["message"]),
            varint_field(_STATUS_CODE, status["code"]),
        )
        yield _nested(15, parts)


def _attribute(field: int, item: Any) -> bytes:
    value = _nested(2, (_text(1, item["value"]["stringValue"]),))
    return _nested(field, (_text(1, item["key"]), value))


def _nested(field: int, parts: Any) -> bytes:
    return bytes_field(field, b"".join(parts))


def _text(field: int, text: str) -> bytes:
    return bytes_field(field, text.encode(errors="replace"))


def _moment(field: int, nanoseconds: str) -> bytes:
    return tag(field, FIXED64) + struct.pack("<Q", int(nanoseconds))

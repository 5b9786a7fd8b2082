"""Audit-Id and traceparent of a request.

Job: the id that the answer's `Audit-Id` carries; the caller's `traceparent`, where it is trusted.
Invariant: as upstream: only who may do anything, or watches over everything, has its trace
    continued; for others a trace of the server's own begins.
"""

import os

from sampan.apiserver.authn.user import MASTERS, MONITORING, User
from sampan.core.http.messages import Request
from sampan.core.telemetry import trace_context
from sampan.core.telemetry.spans import NO_MARKS, Marks

ID_HEADER = "audit-id"
MOST_ID = 64  # as upstream: of an id that callers choose themselves


def begin(marks: Marks) -> None:
    """Calls to others on behalf of this request say so."""
    trace_context.enter(None if marks is NO_MARKS else marks)


def continue_from(marks: Marks, user: User, request: Request) -> None:
    header = request.headers.get(trace_context.HEADER)
    if header is None or marks is NO_MARKS:
        return
    caller = trace_context.parse(header)
    if caller is not None and (MASTERS in user.groups or MONITORING in user.groups):
        marks.continue_from(caller)


def request_id(request: Request) -> str:
    given = request.headers.get(ID_HEADER, "")
    if 0 < len(given) <= MOST_ID and given.isprintable() and given.isascii():
        return given
    bits = os.urandom(16).hex()
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

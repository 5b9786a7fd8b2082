"""The audit log: who asked for what, when, and how it ended.

Job: make the events of one request, by the policy, and hand them to the sinks.
Invariant: bodies are noted only at the levels that ask for them.
Invariant: noting never makes a request wait: sinks buffer, and say when they had to drop.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import orjson

from sampan.api.objects import Obj, copy_of, micro_time_text
from sampan.apiserver.audit.policy import LEVEL_NAMES, AuditPolicy, Level, Ruled
from sampan.apiserver.authn.user import User
from sampan.apiserver.http.request import RequestInfo
from sampan.core.clock import Clock
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.reply_end import when_over

# What the steps of the request that is being served have to say; None: nobody listens.
_notes: ContextVar[dict[str, str] | None] = ContextVar("audit-notes", default=None)


def note(key: str, value: str) -> None:
    """For the steps of the chain: an annotation of the request's audit event."""
    notes = _notes.get()
    if notes is not None:
        notes[key] = value


def is_noting() -> bool:
    return _notes.get() is not None


_CLOSED_EARLY: Obj = {
    "metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200,
}  # fmt: skip
_PANIC: Obj = {"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500}


class Sink(Protocol):
    def write(self, line: bytes) -> None:
        """One event as JSON, without a newline. Never waits."""

    async def close(self) -> None: ...


class Entry:
    """One request on its way."""

    __slots__ = ("_audit", "_event", "_notes", "_ruled")

    def __init__(self, audit: "Audit", ruled: Ruled, event: Obj, notes: dict[str, str]) -> None:
        self._audit, self._ruled, self._event, self._notes = audit, ruled, event, notes

    @property
    def wants_response(self) -> bool:
        return self._ruled.level >= Level.REQUEST_RESPONSE

    def started(self, code: int = 200) -> None:
        """A long answer has begun (watch, exec)."""
        self._write("ResponseStarted", {"metadata": {}, "code": code})

    def impersonated(self, user: User, constraint: str = "") -> None:
        """Whoever has asked speaks as this one from here on; `constraint`: in which mode of
        constrained impersonation."""
        self._event["impersonatedUser"] = _user(user)
        if constraint:
            self._event["authenticationMetadata"] = {"impersonationConstraint": constraint}

    def read(self, body: object) -> None:
        """The body, in whatever form it came; it is the server's to change after this."""
        if self._ruled.level >= Level.REQUEST and isinstance(body, dict | list):
            self._event["requestObject"] = self._body(copy_of(body))

    def closed_early(self) -> None:
        """Whoever asked is gone, before there was an answer. As upstream has it: a success."""
        self._write("ResponseComplete", dict(_CLOSED_EARLY))

    def panicked(self, error: BaseException) -> None:
        """The server has a bug, and answers with 500."""
        message = f"APIServer panic'd: {error}"
        self._write("Panic", {**_PANIC, "message": message})

    def completed(self, request: Request, reply: Reply) -> None:
        status: Obj = {"metadata": {}, "code": reply.status}
        body = b""
        if isinstance(reply, Response):
            # A large list is put together only where its content is asked for.
            body = reply.whole() if self.wants_response else reply.body
        if reply.status >= 400:
            failure = _parse(body)
            for key in ("status", "message", "reason"):
                if failure and failure.get(key):
                    status[key] = failure[key]
        if self._ruled.level >= Level.REQUEST and "requestObject" not in self._event:
            found = _parse(request.body) if request.body else None
            if found is not None:
                self._event["requestObject"] = self._body(found)
        if self._ruled.level >= Level.REQUEST_RESPONSE and body:
            self._event["responseObject"] = self._body(_parse(body))
        self._write("ResponseComplete", status)

    def _body(self, obj: Any) -> Any:
        if not isinstance(obj, dict) or not self._ruled.omit_managed_fields:
            return obj
        meta = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}
        return {**obj, "metadata": meta}

    def received(self) -> None:
        self._write("RequestReceived", None)

    def _write(self, stage: str, status: Obj | None) -> None:
        if stage in self._ruled.omit_stages:
            return
        event = {**self._event, "stage": stage}
        if status is not None:
            event["responseStatus"] = status
            if self._notes:
                event["annotations"] = dict(self._notes)
        self._audit.write(event)


class Audit:
    def __init__(
        self,
        policy: AuditPolicy,
        sinks: Sequence[Sink],
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._policy, self._sinks, self._clock, self._new_id = policy, sinks, clock, new_id

    def begin(
        self, request: Request, info: RequestInfo | None, user: User, id_: str = ""
    ) -> Entry | None:
        """None: the policy wants nothing of it. From now on, notes of the steps are gathered.
        `id_`: what the request is known by; else it gets an id here."""
        verb = info.verb if info is not None else request.method.lower()
        ruled = self._policy.ruled(user, verb, info, request.path)
        if ruled.level is Level.NONE:
            _notes.set(None)
            return None
        notes: dict[str, str] = {}
        _notes.set(notes)
        event = self._event(request, info, user, verb, ruled)
        event["auditID"] = id_ or event["auditID"]
        entry = Entry(self, ruled, event, notes)
        entry.received()
        return entry

    def write(self, event: Obj) -> None:
        event["stageTimestamp"] = micro_time_text(self._clock.now())
        line = orjson.dumps(event)
        for sink in self._sinks:
            sink.write(line)

    async def close(self) -> None:
        for sink in self._sinks:
            await sink.close()

    def _event(
        self, request: Request, info: RequestInfo | None, user: User, verb: str, ruled: Ruled
    ) -> Obj:
        asked = request.path + (f"?{request.query}" if request.query else "")
        given = request.headers.get("audit-id", "")
        event: Obj = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": LEVEL_NAMES[ruled.level],
            "auditID": given if 0 < len(given) <= 64 else self._new_id(),
            "stage": "",
            "requestURI": asked,
            "verb": verb,
            "user": _user(user),
            "sourceIPs": [request.remote] if request.remote else [],
            "requestReceivedTimestamp": micro_time_text(self._clock.now()),
        }
        if request.headers.get("user-agent"):
            event["userAgent"] = request.headers["user-agent"][:1024]
        if info is not None and info.resource is not None:
            event["objectRef"] = _reference(info)
        return event


def _reference(info: RequestInfo) -> Obj:
    assert info.resource is not None
    fields = {
        "resource": info.resource.plural, "namespace": info.namespace, "name": info.name,
        "apiGroup": info.resource.group, "apiVersion": info.resource.version,
        "subresource": info.subresource,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value}


def _user(user: User) -> Obj:
    shown: Obj = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        shown["uid"] = user.uid
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown


def _parse(body: bytes) -> Obj | None:
    try:
        found = orjson.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def audit_reply(entry: Entry, request: Request, reply: Reply) -> Reply:
    """The reply, with the events of its end: now, or when a long answer is over."""
    if isinstance(reply, Response):
        entry.completed(request, reply)
        return reply
    entry.started(reply.status)
    when_over(reply, lambda: entry.completed(request, reply))
    return reply

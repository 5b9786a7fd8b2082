"""Which object a request was about, for its trace.

Job: record answered writes by the uid of their object; remember which uids a name had.
Invariant: what is written all the time (events, leases) has no trace, nor have reads.
"""

import math
from collections.abc import Awaitable, Callable, Sequence

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.resources import PODS
from sampan.api.rules.journey import journey_document
from sampan.api.rules.pods import is_ready, node_name
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.generic import Registry
from sampan.core.bounded import Recent
from sampan.core.fast_dataclass import dataclass
from sampan.core.telemetry.spans import ERROR, NO_MARKS, REQUEST_ID, TOP, About, Marks, Span
from sampan.core.telemetry.trace_context import trace_id_of
from sampan.core.telemetry.traces import MOST_TRACES, Trace, Traces

NODE_USER = "system:node:"
MOST_TEXT, MOST_FACT, MOST_FACTS = 256, 1024, 8  # of what another process says of one step
READS = frozenset({"get", "list", "watch"})
_NOT_TRACED = frozenset({"Event", "Lease"})
_ANSWERED_WHOLE = frozenset({"", "status"})  # the answer is the object itself
MOST_UIDS = 8  # that are told of one name
MayGetPod = Callable[[str, str], Awaitable[bool]]  # of the pod of that namespace and name


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """What a request was about, and how it went."""

    about: About
    uid: str  # of the object; empty where it was refused
    refused: Trace | None = None  # kept here: there is no object to keep it with

    def began(self, id_: str) -> float:
        return math.inf if self.refused is None else self.refused.began_request(id_)


class TracedObjects:
    def __init__(self, registry: Registry, traces: Traces) -> None:
        self.traces = traces
        self._registry = registry
        self._refused: Recent[str, TracedRequest] = Recent(MOST_TRACES)  # by their ids

    def document(self, about: About) -> Obj | None:
        """Every trace of a name, the newest first, with what it had to wait for; None where there
        is none."""
        found = next(iter(self._documents(*about)), None)
        for trace in found["traces"] if found is not None else ():
            trace["journey"] = journey_document(trace)
        return found

    def in_namespace(self, resource: str, namespace: str) -> Obj:
        """Every trace of objects in a namespace, gone ones too."""
        objects = self._documents(resource, namespace)
        return {"resource": resource, "namespace": namespace, "objects": objects}

    def _documents(self, resource: str, namespace: str, name: str = "") -> list[Obj]:
        known = self.traces.of_name(resource, namespace, name)
        return [
            {**about._asdict(), "traces": [self._document(uid) for uid in uids[:MOST_UIDS]]}
            for about, uids in known.items()
        ]

    def _document(self, uid: str) -> Obj:
        trace = self.traces.of(uid)
        assert trace is not None, uid
        return _trace_object(uid, trace.begun_as, trace.spans, trace.dropped)

    def request(self, id_: str) -> TracedRequest | None:
        """Of several that chose one id, the first."""
        uid, refused = self.traces.of_request(id_), self._refused.get(id_)
        about, trace = self._name_of(uid), self.traces.of(uid)
        if about is None or trace is None:
            return refused
        if refused is not None and refused.began(id_) < trace.began_request(id_):
            return refused
        return TracedRequest(about, uid)

    def request_document(self, id_: str, request: TracedRequest) -> Obj | None:
        """The one request alone; None where its trace made room for others."""
        trace = request.refused or self.traces.of(request.uid)
        if trace is None:
            return None
        spans = trace.spans
        at = next((at for at, span in enumerate(spans) if span.facts.get(REQUEST_ID) == id_), None)
        if at is None:
            return None
        parts = [span._replace(parent=0) for span in spans if span.parent == at]
        found = _trace_object(request.uid, trace.begun_as, [spans[at], *parts], 0)
        return {"id": id_, **request.about._asdict(), "traces": [found]}

    def refused(self, call: Call, marks: Marks, why: str) -> None:
        """A write that was answered with an error: there may be no object to remember it with."""
        if marks is NO_MARKS or not marks.id:
            return
        _say_what(marks, call, call.name, "")
        marks.facts[ERROR] = why[:MOST_TEXT]
        trace = self.traces.lone_request(marks)
        # Who chooses another request's id does not replace it.
        self._refused.setdefault(marks.id, TracedRequest(marks.about, "", trace))

    async def receive(self, user: User, spans: object, may: MayGetPod) -> int:
        """What other processes have noted; how many were taken: of pods that are known here, from
        whoever may write their status (a node: of its own pods)."""
        items = spans if isinstance(spans, list) else ()
        told = [(span, item["uid"]) for item in items if (span := _span_of(item)) is not None]
        names = self._pod_names({uid for _, uid in told})
        allowed = {
            uid: about is not None and await self._may_tell(user, about, may)
            for uid, about in names.items()
        }
        taken = 0
        for span, uid in told:
            about = names[uid]
            if about is not None and allowed[uid]:
                self.traces.add_of(about, uid, span)
                taken += 1
        return taken

    def _pod_names(self, uids: set[str]) -> dict[str, About | None]:
        """None of those that are no pods. Some may be written through other servers alone."""
        names = {uid: self._name_of(uid) for uid in uids}
        unknown = {uid for uid, about in names.items() if about is None}
        if unknown:
            for pod in self._registry.find_all(PODS):
                if (uid := uid_of(pod)) in unknown:
                    names[uid] = About("pods", namespace_of(pod), name_of(pod))
        return {
            uid: about if about is not None and about.resource == "pods" else None
            for uid, about in names.items()
        }

    async def _may_tell(self, user: User, about: About, may: MayGetPod) -> bool:
        if user.name.startswith(NODE_USER):
            pod = self._registry.find(PODS, about.namespace, about.name)
            if pod is None or node_name(pod) != user.name.removeprefix(NODE_USER):
                return False
        return await may(about.namespace, about.name)

    def _name_of(self, uid: str) -> About | None:
        trace = self.traces.of(uid)
        return trace.about if trace is not None else None

    def answered(self, user: User, call: Call, answer: Answer | ListAnswer, marks: Marks) -> None:
        """A write that was done. What it takes here, every write pays for."""
        if marks is NO_MARKS or isinstance(answer, ListAnswer) or call.options.dry_run:
            return
        kind = call.resource.kind
        if kind in _NOT_TRACED:
            return
        obj = answer.obj
        meta = obj.get("metadata") or {}
        name, uid = call.name or meta.get("name") or "", meta.get("uid") or ""
        if call.subresource not in _ANSWERED_WHOLE or not uid:
            # The answer is a Status or a Scale: it is about the object of that name.
            found = self._registry.find(call.resource, call.namespace, name)
            uid = uid_of(found) if found is not None else uid
        if not uid:
            return
        _say_what(marks, call, name, user.name)
        if kind == "Pod":
            _say_phase(marks, call, obj)
        self.traces.request(uid, marks)


def _say_phase(marks: Marks, call: Call, pod: Obj) -> None:
    status = pod.get("status")
    if isinstance(status, dict):  # of a Status it is a word
        marks.phase = status.get("phase") or ""
        if call.subresource == "status" and is_ready(pod):
            marks.facts["ready"] = "True"


def _say_what(marks: Marks, call: Call, name: str, user: str) -> None:
    resource = call.resource
    marks.user, marks.phase = user, ""
    marks.verb, marks.subresource = call.verb, call.subresource
    marks.group, marks.plural = resource.group, resource.plural
    marks.namespace, marks.name = call.namespace, name


def _span_of(item: object) -> Span | None:
    """None where it is no span."""
    if not isinstance(item, dict) or not isinstance(item.get("uid"), str):
        return None
    lane, name, facts = item.get("lane"), item.get("name"), item.get("facts")
    if not (isinstance(lane, str) and isinstance(name, str) and isinstance(facts, dict)):
        return None
    began, ended = _moment(item.get("began")), _moment(item.get("ended"))
    if len(lane) + len(name) > MOST_TEXT or not 0 <= began <= ended or len(facts) > MOST_FACTS:
        return None
    told = {str(key)[:MOST_TEXT]: str(value)[:MOST_FACT] for key, value in facts.items()}
    return Span(lane, name, began, ended, TOP, told)


def _moment(value: object) -> float:
    return float(value) if isinstance(value, int | float) else -1.0


def _trace_object(uid: str, id_: str, spans: Sequence[Span], dropped: int) -> Obj:
    items = [
        {
            "lane": span.lane, "name": span.name, "began": span.began, "ended": span.ended,
            "parent": span.parent, "facts": dict(span.facts),
        }
        for span in spans
    ]  # fmt: skip
    return {"uid": uid, "traceId": id_ or trace_id_of(uid), "spans": items, "dropped": dropped}

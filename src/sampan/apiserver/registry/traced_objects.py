"""Which object a request was about, for its trace.

Job: record answered writes by the uid of their object; remember which uids a name had.
Invariant: what is written all the time (events, leases) has no trace, nor have reads.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.objects import Obj, uid_of
from sampan.api.resources import PODS
from sampan.api.rules.pods import is_ready, node_name
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.generic import Registry
from sampan.core.fast_dataclass import dataclass
from sampan.core.telemetry.trace_context import trace_id_of
from sampan.core.telemetry.traces import (
    MOST_TRACES,
    NO_MARKS,
    TOP,
    Marks,
    Span,
    Trace,
    Traces,
)

NODE_USER = "system:node:"
MOST_TEXT, MOST_FACT, MOST_FACTS = 256, 1024, 8  # of what another process says of one step
READS = frozenset({"get", "list", "watch"})
LANE = "apiserver"
_NOT_TRACED = frozenset({"Event", "Lease"})
_MOST_UIDS = 8  # that one name is remembered with
MayTell = Callable[[str, str], Awaitable[bool]]  # of the pod of that namespace and name
Name = tuple[str, str, str]  # resource with its group, namespace, name
REQUEST_ID = "audit-id"  # the fact by which a request is found again


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """What a request was about, and how it went."""

    about: Name
    uid: str  # of the object; empty where it was refused
    refused: Trace | None = None  # kept here: there is no object to keep it with


class TracedObjects:
    def __init__(self, registry: Registry, traces: Traces) -> None:
        self.traces = traces
        self._registry = registry
        self._names: OrderedDict[str, Name] = OrderedDict()  # by uid
        self._uids: OrderedDict[Name, list[str]] = OrderedDict()  # the newest last
        self._refused: OrderedDict[str, TracedRequest] = OrderedDict()  # by their ids

    def uids(self, resource: str, namespace: str, name: str) -> list[str]:
        """Whom a name has stood for, the newest first."""
        return self._uids.get((resource, namespace, name), [])[::-1]

    def document(self, resource: str, namespace: str, name: str) -> Obj | None:
        """Every trace of a name, the newest first; None where there is none."""
        found = ((uid, self.traces.of(uid)) for uid in self.uids(resource, namespace, name))
        traces = [
            _trace_object(uid, trace.begun_as, trace.spans, trace.dropped)
            for uid, trace in found
            if trace is not None
        ]
        if not traces:
            return None
        return {"namespace": namespace, "name": name, "resource": resource, "traces": traces}

    def in_namespace(self, resource: str, namespace: str) -> Obj:
        """Every trace of objects in a namespace, gone ones too."""
        names = [name for kind, where, name in self._uids if (kind, where) == (resource, namespace)]
        found = [self.document(resource, namespace, name) for name in names]
        return {"resource": resource, "namespace": namespace,
                "objects": [item for item in found if item is not None]}  # fmt: skip

    def request(self, id_: str) -> TracedRequest | None:
        """Asked seldom, answered all the time: it is looked for."""
        uid = self.traces.of_request(REQUEST_ID, id_)
        if uid and uid in self._names:
            return TracedRequest(self._names[uid], uid)
        return self._refused.get(id_)

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
        resource, namespace, name = request.about
        return {
            "id": id_, "resource": resource, "namespace": namespace, "name": name,
            "traces": [_trace_object(request.uid, trace.begun_as, [spans[at], *parts], 0)],
        }  # fmt: skip

    def refused(self, about: Name, verb: str, marks: Marks, why: str) -> None:
        """A write that was answered with an error: there may be no object to remember it with."""
        if marks is NO_MARKS or not marks.id:
            return
        marks.at("refused")
        marks.facts[REQUEST_ID], marks.facts["error"] = marks.id, why[:MOST_TEXT]
        trace = self.traces.lone_request(LANE, f"{verb} {about[0]}", marks)
        self._refused[marks.id] = TracedRequest(about, "", trace)
        if len(self._refused) > MOST_TRACES:
            self._refused.popitem(last=False)

    async def receive(self, user: User, spans: object, may: MayTell) -> int:
        """What other processes have noted; how many were taken: of pods that are known here, from
        whoever may write their status (a node: of its own pods)."""
        taken = 0
        allowed: dict[str, bool] = {}
        for item in spans if isinstance(spans, list) else ():
            span = _span_of(item)
            if span is None:
                continue
            uid = item["uid"]
            if uid not in allowed:
                allowed[uid] = await self._may_tell(user, uid, may)
            if allowed[uid]:
                self.traces.add(uid, span)
                taken += 1
        return taken

    async def _may_tell(self, user: User, uid: str, may: MayTell) -> bool:
        name = self._names.get(uid)
        if name is None or name[0] != "pods":
            return False
        if user.name.startswith(NODE_USER):
            pod = self._registry.find(PODS, name[1], name[2])
            if pod is None or node_name(pod) != user.name.removeprefix(NODE_USER):
                return False
        return await may(name[1], name[2])

    def answered(self, user: User, call: Call, answer: Answer | ListAnswer, marks: Marks) -> None:
        if marks is NO_MARKS or isinstance(answer, ListAnswer) or call.options.dry_run:
            return
        resource = call.resource
        if resource.kind in _NOT_TRACED:
            return
        meta = answer.obj.get("metadata") or {}
        name, uid = call.name or meta.get("name") or "", meta.get("uid") or ""
        if call.subresource or not uid:
            # The answer is a Status or a Scale: it is about the object of that name.
            found = self._registry.find(resource, call.namespace, name)
            uid = uid_of(found) if found is not None else uid
        if not uid:
            return
        self._remember((resource.group_resource, call.namespace, name), uid, marks)
        if marks.steps:
            marks.at("response")
        marks.facts["user"] = user.name
        if resource.kind == "Pod":
            _note_phase(call, answer.obj, marks)
        plural = f"{resource.plural}/{call.subresource}" if call.subresource else resource.plural
        self.traces.request(uid, LANE, f"{call.verb} {plural}", marks)

    def _remember(self, name: Name, uid: str, marks: Marks) -> None:
        if marks.id:
            marks.facts[REQUEST_ID] = marks.id
        uids = self._uids.get(name)
        if uids is None:
            if len(self._uids) >= MOST_TRACES:
                self._uids.popitem(last=False)
            uids = self._uids[name] = []
        if uid not in uids:
            uids.append(uid)
            del uids[:-_MOST_UIDS]
            self._names[uid] = name
            if len(self._names) > MOST_TRACES:
                self._names.popitem(last=False)


def _note_phase(call: Call, pod: Obj, marks: Marks) -> None:
    status = pod.get("status")
    if isinstance(status, dict) and status.get("phase"):
        marks.facts["phase"] = status["phase"]
        if call.subresource == "status" and is_ready(pod):
            marks.facts["ready"] = "True"


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

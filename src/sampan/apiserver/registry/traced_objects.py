"""Which object a request was about, for its trace.

Job: record answered writes by the uid of their object; remember which uids a name had.
Invariant: what is written all the time (events, leases) has no trace, nor have reads.
"""

from collections import OrderedDict

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.objects import Obj, uid_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.generic import Registry
from sampan.core.telemetry.traces import MOST_TRACES, NO_MARKS, Marks, Trace, Traces

READS = frozenset({"get", "list", "watch"})
LANE = "apiserver"
_NOT_TRACED = frozenset({"Event", "Lease"})
_MOST_UIDS = 8  # that one name is remembered with
Name = tuple[str, str, str]  # resource with its group, namespace, name


class TracedObjects:
    def __init__(self, registry: Registry, traces: Traces) -> None:
        self.traces = traces
        self._registry = registry
        self._uids: OrderedDict[Name, list[str]] = OrderedDict()  # the newest last

    def uids(self, resource: str, namespace: str, name: str) -> list[str]:
        """Whom a name has stood for, the newest first."""
        return self._uids.get((resource, namespace, name), [])[::-1]

    def document(self, resource: str, namespace: str, name: str) -> Obj | None:
        """Every trace of a name, the newest first; None where there is none."""
        found = ((uid, self.traces.of(uid)) for uid in self.uids(resource, namespace, name))
        traces = [_trace_object(uid, trace) for uid, trace in found if trace is not None]
        if not traces:
            return None
        return {"namespace": namespace, "name": name, "resource": resource, "traces": traces}

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
        self._remember((resource.group_resource, call.namespace, name), uid)
        if marks.steps:
            marks.at("response")
        marks.facts["user"] = user.name
        status = answer.obj.get("status")
        if resource.kind == "Pod" and isinstance(status, dict) and status.get("phase"):
            marks.facts["phase"] = status["phase"]
        plural = f"{resource.plural}/{call.subresource}" if call.subresource else resource.plural
        self.traces.request(uid, LANE, f"{call.verb} {plural}", marks)

    def _remember(self, name: Name, uid: str) -> None:
        uids = self._uids.get(name)
        if uids is None:
            if len(self._uids) >= MOST_TRACES:
                self._uids.popitem(last=False)
            uids = self._uids[name] = []
        if uid not in uids:
            uids.append(uid)
            del uids[:-_MOST_UIDS]


def _trace_object(uid: str, trace: Trace) -> Obj:
    spans = [
        {
            "lane": span.lane, "name": span.name, "began": span.began, "ended": span.ended,
            "parent": span.parent, "facts": dict(span.facts),
        }
        for span in trace.spans
    ]  # fmt: skip
    return {"uid": uid, "spans": spans, "dropped": trace.dropped}

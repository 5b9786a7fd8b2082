"""What happened in the lab: the life of every pod, and how full the nodes were at each moment.

Job: fold changes of pods and nodes, with their time, into records. Pure.
Invariant: what a pod holds counts from its binding until it is over, deleted, or gone.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from sampan.api.objects import Obj, is_deleted, labels_of, name_of, namespace_of, uid_of
from sampan.api.quantity import value_of
from sampan.api.rules import pod_resources, pods
from sampan.api.rules.conditions import is_true
from sampan.cmd.lab.arrivals import EXIT_ANNOTATION, NEVER, STREAM_LABEL
from sampan.core.fast_dataclass import dataclass

PREEMPTED = "PreemptionByScheduler"  # as the reason of a DisruptionTarget
Amounts = Mapping[str, float]


@dataclass(slots=True)
class Life:
    """One pod's; times are seconds since the beginning."""

    name: str
    namespace: str
    stream: str
    requests: Amounts
    priority: int
    arrived: float
    is_endless: bool = False
    scheduled: float | None = None
    node: str = ""
    started: float | None = None
    ended: float | None = None
    outcome: str = "Pending"  # Running; Succeeded, Failed, Preempted, Deleted at the end
    why_pending: str = ""  # as the scheduler said it last
    preempted_by: str = ""

    @property
    def holds(self) -> bool:
        return bool(self.node) and self.ended is None


@dataclass(frozen=True, slots=True)
class Moment:
    """From this time on, until the next one."""

    at: float
    used: Amounts
    pending: int
    running: int
    nodes: int  # that are Ready


@dataclass(slots=True)
class NodeRecord:
    name: str
    kind: str
    zone: str
    allocatable: Amounts
    ready: bool = False
    pods: int = 0  # that were bound to it, ever
    held: dict[str, float] = field(default_factory=dict)  # resource × seconds


class Ledger:
    def __init__(self, began: float) -> None:
        self._began = began
        self.lives: dict[str, Life] = {}  # by uid
        self.nodes: dict[str, NodeRecord] = {}
        self.moments: list[Moment] = []
        self._used: dict[str, float] = {}
        self._outcomes: Counter[str] = Counter()
        self._ending = 0  # pods that hold a place and have an end of their own

    def pod(self, old: Obj | None, new: Obj | None, now: float) -> None:
        at, pod = now - self._began, new or old
        assert pod is not None
        life = self.lives.get(uid_of(pod))
        if life is None:
            life = self.lives[uid_of(pod)] = _life(pod, at)
            self._outcomes[life.outcome] += 1
        held, known = life.holds, life.outcome
        _note(life, pod, at, gone=new is None)
        if life.holds and not held:
            self._take(life, 1)
            self._record(life.node).pods += 1
        elif held and not life.holds:
            self._take(life, -1)
            since = at - (life.scheduled or 0.0)
            _add_held(self._record(life.node), life.requests, since)
        self._outcomes[known] -= 1
        self._outcomes[life.outcome] += 1
        if known != life.outcome or held != life.holds or old is None:
            self._note_moment(at)

    def node(self, node: Obj, now: float) -> None:
        record = self._record(name_of(node))
        labels = labels_of(node)
        record.kind = labels.get("node.kubernetes.io/instance-type", "")
        record.zone = labels.get("topology.kubernetes.io/zone", "")
        record.allocatable = _amounts((node.get("status") or {}).get("allocatable") or {})
        ready = is_true(node, "Ready")
        if ready != record.ready:
            record.ready = ready
            self._note_moment(now - self._began)

    def event(self, event: Obj) -> None:
        """Who preempted whom."""
        victim = self.lives.get((event.get("involvedObject") or {}).get("uid", ""))
        words = (event.get("message") or "").split()
        if victim is None or event.get("reason") != "Preempted" or len(words) < 4:
            return
        preemptor = self.lives.get(words[3])
        victim.preempted_by = preemptor.name if preemptor is not None else words[3]

    def close(self, now: float) -> None:
        """What still runs has held its place until now."""
        for life in self.lives.values():
            if life.holds:
                lasted = now - self._began - (life.scheduled or 0.0)
                _add_held(self._record(life.node), life.requests, lasted)
        self._note_moment(now - self._began)

    def is_quiet(self) -> bool:
        """Nothing that has an end of its own is on its way."""
        return self._ending == 0

    def _record(self, name: str) -> NodeRecord:
        return self.nodes.setdefault(name, NodeRecord(name, "", "", {}))

    def _take(self, life: Life, sign: int) -> None:
        self._ending += 0 if life.is_endless else sign
        for name, amount in life.requests.items():
            self._used[name] = self._used.get(name, 0.0) + sign * amount

    def _note_moment(self, at: float) -> None:
        outcomes = self._outcomes
        ready = sum(record.ready for record in self.nodes.values())
        moment = Moment(at, {**self._used}, outcomes["Pending"], outcomes["Running"], ready)
        if self.moments and self.moments[-1].at == at:
            self.moments[-1] = moment
        else:
            self.moments.append(moment)


def _life(pod: Obj, at: float) -> Life:
    requests = {name: amount.as_float() for name, amount in pod_resources.requests(pod).items()}
    ends = (pod["metadata"].get("annotations") or {}).get(EXIT_ANNOTATION, NEVER)
    return Life(
        name_of(pod), namespace_of(pod), labels_of(pod).get(STREAM_LABEL, ""), requests,
        pods.priority(pod), at, is_endless=ends == NEVER,
    )  # fmt: skip


def _note(life: Life, pod: Obj, at: float, *, gone: bool) -> None:
    if life.ended is not None:
        return
    if (node := pods.node_name(pod)) and life.scheduled is None:
        life.scheduled, life.node, life.why_pending = at, node, ""
    if pods.phase(pod) == "Running" and life.started is None:
        life.started = at
    scheduled = pods.condition(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False":
        life.why_pending = scheduled.get("message") or scheduled.get("reason") or ""
    if gone or pods.is_terminal(pod):
        life.ended, life.outcome = at, _outcome(pod, gone=gone)
    elif life.node and not is_deleted(pod):
        life.outcome = "Running"


def _outcome(pod: Obj, *, gone: bool) -> str:
    disrupted = pods.condition(pod, "DisruptionTarget") or {}
    if disrupted.get("status") == "True" and disrupted.get("reason") == PREEMPTED:
        return "Preempted"
    if pods.is_terminal(pod):
        return pods.phase(pod)
    return "Deleted" if gone else "Failed"


def _add_held(record: NodeRecord, requests: Amounts, seconds: float) -> None:
    for name, amount in requests.items():
        record.held[name] = record.held.get(name, 0.0) + amount * seconds


def _amounts(written: Mapping[str, str]) -> Amounts:
    return {name: value_of(amount).as_float() for name, amount in written.items()}

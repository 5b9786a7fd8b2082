"""A pod's way on one time axis: which steps there were, and which of them it had to wait for.

Job: the spans of a trace → the way from the create to Running, on to Ready, and the way down; the
    critical path of each, the slowest step and what would make it faster, where it stopped. Pure.
Invariant: the steps of the critical path add up to the whole way; where nobody worked, it says so.
"""

from collections.abc import Sequence
from dataclasses import replace

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

BLUR_SECONDS = 0.0005  # by which clocks of one machine may disagree about a moment
WAITING = "waiting"  # the lane of time in which nobody says to have worked
DELIVERY = "watch delivery"  # how a wait is called that lies between a write and who heard of it
_SERVER, _DELETE, _EVICT = "apiserver", "delete pods", "create pods/eviction"
_CREATE = "create pods"
_BACKWARDS = lazy_pattern(
    r"back-off of |.* ran\Z"
)  # steps that tell of what was before they were noted
_TROUBLES = ("error", "refused by")  # facts of a step that did not succeed
# What would make a step faster, by how its name begins.
_ADVICE = (
    ("image", "the image came from a registry: `sampan image import` brings it before, and "
              "imagePullPolicy: IfNotPresent keeps it"),
    ("sandbox", "the runtime and its network plugin make the pod's namespaces: nothing of the pod "
                "makes that faster"),
    ("queue", "`sampan why` tells what it waited for"),
    ("preemption", "it needed others to go first: more room, or less requested, avoids that"),
    ("volumes", "volumes come before containers: fewer or smaller ones, or a faster driver"),
    ("bind volumes", "the provisioner of its claims took that long"),
    ("permit", "a scheduler plugin held it back"),
    ("create", "the runtime prepares the container's file system: a smaller image helps"),
    ("start", "the runtime starts the first process of the container"),
    ("postStart", "its postStart hook ran that long"),
    ("preStop", "its preStop hook ran that long"),
    ("stop ", "it took that long to end: does its first process act on SIGTERM?"),
    ("readiness probe", "it was not ready before: a shorter periodSeconds notices sooner"),
    ("startup probe", "it had not started before: a shorter periodSeconds notices sooner"),
    ("back-off", "it had ended, and was held back before its next start: `sampan why` and "
                 "`sampan logs --previous` may know why it ends"),
    ("webhook", "a webhook took that long to answer"),
    (DELIVERY, "the part that had to act heard of it that late: it, or the API server, was busy"),
    ("MutatingAdmissionWebhook", "a webhook took that long to answer"),
    ("ValidatingAdmissionWebhook", "a webhook took that long to answer"),
    ("priority", "the API server was busy: its flow schema had no seat free"),
    (WAITING, "containers ran, and were not ready: probes decide that; or a component was busy"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    lane: str
    name: str
    began: float
    ended: float
    depth: int = 0  # how many others of its lane it is a part of
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class Journey:
    began: float
    ended: float  # when it was Running (or gone), or what is last known
    reached: str  # the last phase that the API was told
    steps: tuple[Step, ...]  # by lane, then by time
    critical: tuple[Step, ...]  # by time, without gaps
    dropped: int
    ready: float | None = None  # when it was Ready, where that was later than Running
    until_ready: tuple[Step, ...] = ()  # what it waited for from Running to Ready
    stopped: Step | None = None  # where it stopped, of one that never ran
    created: bool = True  # False: its create was before this API server's start, or on its node

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def slowest(self) -> Step | None:
        return max(self.critical, key=lambda step: step.seconds, default=None)


def journey_of(trace: Obj) -> Journey | None:
    """The way up; None where the trace is empty."""
    steps = steps_of(trace)
    if not steps:
        return None
    created = any(step.lane == _SERVER and step.name == _CREATE for step in steps)
    if not created:
        steps = _noted_here(steps)
    up = _before_deletion(steps)
    began = min(step.began for step in up)
    running, ready = _first(up, "phase", "Running"), _first(up, "ready", "True")
    ended = running if running is not None else max(step.ended for step in up)
    if running is None or ready is None or ready <= running:
        ready = None
    reached = _last(up, "phase")
    return Journey(
        began, ended, reached, tuple(_by_lane(steps)), tuple(_critical_path(up, began, ended)),
        int(trace.get("dropped") or 0), ready,
        tuple(_critical_path(up, ended, ready)) if ready is not None else (),
        _stopped(up) if running is None and reached != "Succeeded" else None, created,
    )  # fmt: skip


def journey_document(trace: Obj) -> Obj | None:
    """The same as JSON, without the steps, which are the trace; None where it is empty."""
    journey = journey_of(trace)
    if journey is None:
        return None
    critical = (*journey.critical, *journey.until_ready)
    slowest, stopped = journey.slowest, journey.stopped
    advice = advice_on(slowest) if slowest is not None else ""
    return {
        "began": journey.began, "ended": journey.ended, "ready": journey.ready,
        "reached": journey.reached,
        "critical": [_step_object(step) for step in critical],
        "slowest": None if slowest is None else {**_step_object(slowest), "advice": advice},
        "stopped": None if stopped is None else _step_object(stopped),
    }  # fmt: skip


def _step_object(step: Step) -> Obj:
    return {"lane": step.lane, "name": step.name, "began": step.began, "ended": step.ended}


def _noted_here(steps: list[Step]) -> list[Step]:
    """Without the life that containers had before the API server started again."""
    began = min((step.began for step in steps if not _BACKWARDS.match(step.name)), default=0.0)
    return [step for step in steps if step.began >= began]


def _before_deletion(steps: list[Step]) -> list[Step]:
    deleted = deletion_of(steps)
    return [step for step in steps if deleted is None or step.began < deleted.began] or steps


def _last(steps: Sequence[Step], key: str) -> str:
    return next((found for step in reversed(steps) if (found := _fact(step, key))), "")


def _first(steps: Sequence[Step], key: str, value: str) -> float | None:
    """When the API was first told so."""
    return min((step.ended for step in steps if _fact(step, key) == value), default=None)


def way_down_of(trace: Obj, removal: str = _DELETE) -> Journey | None:
    """From the wish that it should go to its object's removal; None where nobody wished so."""
    steps = steps_of(trace)
    deleted = deletion_of(steps, removal)
    if deleted is None:
        return None
    down = [step for step in steps if step.began >= deleted.began]
    ended = max(step.ended for step in down)
    path = tuple(_critical_path(down, deleted.began, ended))
    dropped = int(trace.get("dropped") or 0)
    return Journey(deleted.began, ended, "", tuple(_by_lane(down)), path, dropped)


def steps_of(trace: Obj) -> list[Step]:
    return [
        Step(span["lane"], span["name"], span["began"], span["ended"], 0,
             tuple(span["facts"].items()))
        for span in map(_clean, trace.get("spans") or ())
    ]  # fmt: skip


def deletion_of(steps: Sequence[Step], removal: str = _DELETE) -> Step | None:
    asked = (step for step in steps if step.lane == _SERVER and step.name in (removal, _EVICT))
    return min(asked, key=lambda step: step.began, default=None)


def _stopped(steps: Sequence[Step]) -> Step | None:
    """The last step that failed or refused it; else the last one at all."""
    failed = [step for step in steps if any(_fact(step, word) for word in _TROUBLES)]
    return max(failed or steps, key=lambda step: step.ended, default=None)


def _fact(step: Step, key: str) -> str:
    return dict(step.facts).get(key, "")


def advice_on(step: Step) -> str:
    return next((told for head, told in _ADVICE if step.name.startswith(head)), "")


def _by_lane(steps: Sequence[Step]) -> list[Step]:
    """Lanes in the order in which they first act; within one by time, parts below their whole."""
    first: dict[str, float] = {}
    for step in steps:
        first[step.lane] = min(first.get(step.lane, step.began), step.began)
    ordered = sorted(steps, key=lambda step: (first[step.lane], step.began, -step.seconds))
    nested: list[Step] = []
    around: list[Step] = []
    for step in ordered:
        while around and not _contains(around[-1], step):
            around.pop()
        nested.append(replace(step, depth=len(around)))
        around.append(step)
    return nested


def _contains(whole: Step, part: Step) -> bool:
    inside = whole.began <= part.began + BLUR_SECONDS and part.ended <= whole.ended + BLUR_SECONDS
    return whole.lane == part.lane and inside and part.seconds <= whole.seconds


def _critical_path(steps: Sequence[Step], began: float, ended: float) -> list[Step]:
    """Backwards from the end: whoever worked last, until somebody inside of it or before it did."""
    path: list[Step] = []
    at = ended
    while at > began:
        working = [step for step in steps if step.began < at <= step.ended]
        if working:
            owner = max(working, key=lambda step: (step.began, -step.ended))
            inner = [
                step.ended
                for step in steps
                if owner.began < step.ended < at and step.began >= owner.began
            ]
            since = max([began, owner.began, *inner])
            path.append(Step(owner.lane, owner.name, since, at))
        else:
            since = max([began, *(step.ended for step in steps if step.ended < at)])
            path.append(Step(WAITING, _wait_name(steps, since, path[-1:]), since, at))
        at = since
    return _joined(path[::-1])


def _wait_name(steps: Sequence[Step], since: float, after: Sequence[Step]) -> str:
    """Parts know of each other's work from their watches alone."""
    others = [step.lane for step in after if step.lane not in (_SERVER, WAITING)]
    handed = any(step.ended == since and step.lane not in others for step in steps)
    return f"{DELIVERY} to the {others[0]}" if handed and others else WAITING


def _joined(path: Sequence[Step]) -> list[Step]:
    joined: list[Step] = []
    for step in path:
        last = joined[-1] if joined else None
        if last is not None and (last.lane, last.name) == (step.lane, step.name):
            joined[-1] = Step(step.lane, step.name, last.began, step.ended)
        else:
            joined.append(step)
    return joined


def _clean(span: Obj) -> Obj:
    """Whatever others wrote, nothing of it moves the cursor of a terminal."""
    facts = {printable(key): printable(str(value)) for key, value in span["facts"].items()}
    return {**span, "lane": printable(span["lane"]), "name": printable(span["name"]),
            "facts": facts}  # fmt: skip


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)

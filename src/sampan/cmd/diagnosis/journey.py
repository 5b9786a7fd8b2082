"""A pod's way on one time axis: which steps there were, and which of them it had to wait for.

Job: the spans of a trace → the way from the create to Running, its critical path, the slowest
    step and what would make it faster. Pure.
Invariant: the steps of the critical path add up to the whole way; where nobody worked, it says so.
"""

from collections.abc import Sequence
from dataclasses import replace

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

BLUR_SECONDS = 0.0005  # by which clocks of one machine may disagree about a moment
WAITING = "waiting"  # the lane of time in which nobody says to have worked
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
    ended: float  # when it was Running, or what is last known
    reached: str  # the last phase that the API was told
    steps: tuple[Step, ...]  # by lane, then by time
    critical: tuple[Step, ...]  # by time, without gaps
    dropped: int

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def slowest(self) -> Step | None:
        return max(self.critical, key=lambda step: step.seconds, default=None)


def journey_of(trace: Obj) -> Journey | None:
    """None where the trace is empty."""
    spans = [_clean(span) for span in trace.get("spans") or ()]
    if not spans:
        return None
    steps = [
        Step(span["lane"], span["name"], span["began"], span["ended"], 0,
             tuple(span["facts"].items()))
        for span in spans
    ]  # fmt: skip
    began = min(step.began for step in steps)
    running = [step for step in steps if dict(step.facts).get("phase") == "Running"]
    ended = min((step.ended for step in running), default=max(step.ended for step in steps))
    phases = [dict(step.facts)["phase"] for step in steps if "phase" in dict(step.facts)]
    return Journey(
        began, ended, phases[-1] if phases else "",
        tuple(_by_lane(steps)), tuple(_critical_path(steps, began, ended)),
        int(trace.get("dropped") or 0),
    )  # fmt: skip


def advice_on(step: Step) -> str:
    name = WAITING if step.lane == WAITING else step.name
    return next((told for head, told in _ADVICE if name.startswith(head)), "")


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
            since = max([owner.began, *inner])
            path.append(Step(owner.lane, owner.name, since, at))
        else:
            since = max((step.ended for step in steps if step.ended < at), default=began)
            path.append(Step(WAITING, WAITING, since, at))
        at = since
    return _joined(path[::-1])


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

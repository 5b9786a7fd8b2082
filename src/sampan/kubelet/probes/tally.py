"""One probe of one container: what it asks, when it is due, and what its results add up to. Pure.

Job: read a probe of a pod's spec; fold one result into the next Tally; say when to ask next.
Invariant: a verdict changes only after as many equal results in a row as its threshold says.
Invariant: once a startup probe has succeeded, or a liveness or startup probe has failed for good,
    the verdict stays: the container is probed no more.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from sampan.api.objects import Obj, annotations_of
from sampan.core.fast_dataclass import dataclass

# Opt-in, on the pod: seconds between the probes of its containers; may end in `.CONTAINER`.
PERIOD_ANNOTATION = "probes.sampan.dev/period-seconds"
SHORTEST_PERIOD_SECONDS = 0.05
# Upstream notices a new container about a second after its start, and probes it first then. We
# notice at once; a failure before that second has passed says nothing, and is not counted.
SETTLING_SECONDS = 1.0
# When to look for an early success meanwhile: an answer costs a connection, a command costs a fork.
EARLY_SECONDS = (0.1, 0.3, 0.6)
EARLY_COMMAND_SECONDS = (0.2,)


class Kind(StrEnum):
    LIVENESS = "liveness"
    READINESS = "readiness"
    STARTUP = "startup"


@dataclass(frozen=True, slots=True)
class Probe:
    kind: Kind
    action: Obj  # with one of exec, httpGet, tcpSocket, grpc
    period_seconds: float = 10.0
    timeout_seconds: float = 1.0
    delay_seconds: float = 0.0
    success_threshold: int = 1
    failure_threshold: int = 3


@dataclass(frozen=True, slots=True)
class Tally:
    """`verdict` None: not enough is known yet."""

    verdict: bool | None = None
    last: bool | None = None
    run: int = 0


PROBES = frozenset(f"{kind}Probe" for kind in Kind)  # the fields of a container


def probes_of(pod: Obj, container: Obj) -> Iterator[Probe]:
    for kind in Kind:
        found = container.get(f"{kind}Probe")
        if found:
            yield Probe(
                kind,
                found,
                period_seconds=_period(pod, container, found),
                timeout_seconds=float(found.get("timeoutSeconds") or 1),
                delay_seconds=float(found.get("initialDelaySeconds") or 0),
                success_threshold=int(found.get("successThreshold") or 1),
                failure_threshold=int(found.get("failureThreshold") or 3),
            )


def _period(pod: Obj, container: Obj, probe: Obj) -> float:
    notes = annotations_of(pod)
    text = notes.get(f"{PERIOD_ANNOTATION}.{container['name']}", notes.get(PERIOD_ANNOTATION))
    try:
        return max(SHORTEST_PERIOD_SECONDS, float(text)) if text else _spec_period(probe)
    except ValueError:
        return _spec_period(probe)


def _spec_period(probe: Obj) -> float:
    return float(probe.get("periodSeconds") or 10)


def count(probe: Probe, tally: Tally, success: bool) -> Tally:
    assert not is_settled(probe, tally), (probe.kind, tally)
    run = tally.run + 1 if tally.last is success else 1
    threshold = probe.success_threshold if success else probe.failure_threshold
    verdict = success if run >= threshold else tally.verdict
    return replace(tally, verdict=verdict, last=success, run=run)


def is_settled(probe: Probe, tally: Tally) -> bool:
    """Nothing more is asked of this container by this probe."""
    match probe.kind:
        case Kind.STARTUP:
            return tally.verdict is not None
        case Kind.LIVENESS:
            return tally.verdict is False
        case Kind.READINESS:
            return False


def first_due(probe: Probe, started_at: float, now: float, chance: float) -> float:
    """When to ask first and count the answer. `chance` in [0, 1) spreads the probes of containers
    that run since before we came: they would all be due at once."""
    due = started_at + max(probe.delay_seconds, min(SETTLING_SECONDS, probe.period_seconds))
    if now - started_at > probe.period_seconds:
        return max(due, now + chance * probe.period_seconds)
    return max(due, now)


def early_looks(probe: Probe, started_at: float, now: float) -> list[float]:
    """When to look whether the container is ready already, without counting a failure."""
    if probe.kind is Kind.LIVENESS or probe.delay_seconds:
        return []
    offsets = EARLY_COMMAND_SECONDS if "exec" in probe.action else EARLY_SECONDS
    end = min(SETTLING_SECONDS, probe.period_seconds)
    return [started_at + offset for offset in offsets if now < started_at + offset and offset < end]

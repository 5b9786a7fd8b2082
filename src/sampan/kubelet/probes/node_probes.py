"""ProbeManager: which container is probed when, and what its results add up to.

Job: keep one timer per probe of a running container; a task only while it looks; wake the pod when
    a verdict changes.
Invariant: a container that does not run is not probed; a pod without probes costs nothing.
Invariant: while a container has not started, only its startup probe runs.
Invariant: a verdict that changed wakes its pod once.
Owner: PodSync tells it about pods; Kubelet builds it.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import field

from sampan.api.objects import Obj, is_deleted, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import give_way
from sampan.kubelet.context import LANE, NodeContext
from sampan.kubelet.contracts.probes_hook import NO_CHECKS, Checks
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ContainerStatus,
    ObservedPod,
    Role,
    address_of,
)
from sampan.kubelet.contracts.spec import latest, status_named, with_roles
from sampan.kubelet.probes.finding import Check, Finding, Probed, ProbeError
from sampan.kubelet.probes.results import FAILED, SUCCESSFUL, UNKNOWN, ProbeResults
from sampan.kubelet.probes.tally import (
    PROBES,
    Kind,
    Probe,
    Tally,
    count,
    early_looks,
    first_due,
    is_settled,
    probes_of,
)
from sampan.kubelet.status.recorder import PodEvents

MANY = 32  # probes of one pod
TRIES = 3  # as upstream: of a look that found nothing out
Key = tuple[str, Kind]  # container id, which probe


@dataclass(slots=True)
class _Slot:
    """One probe of one running container."""

    uid: str
    probe: Probe
    about: Probed
    started_at: float
    tally: Tally
    due: float = 0.0
    early: list[float] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None
    looking: asyncio.Task[None] | None = None
    since: float = 0.0  # of its last verdict
    looks: int = 0  # since then


class ProbeManager:
    def __init__(
        self,
        context: NodeContext,
        *,
        check: Check,
        wake: Callable[[str], None],
        events: PodEvents,
        looks_early: bool = True,
    ) -> None:
        self._check, self._wake, self._events = check, wake, events
        self._tasks, self._clock, self._rng = context.tasks, context.clock, context.rng
        self._node_ip = (*context.settings.node_ips, "")[0]
        self._looks_early = looks_early
        self._slots: dict[str, dict[Key, _Slot]] = {}  # by pod uid
        self._checks: dict[str, Checks | None] = {}  # None: to be added up when it is asked for
        self._ending: dict[str, Callable[[], object]] = {}  # pods that end: whom to tell
        self._telling: set[str] = set()
        self._results, self._traces = ProbeResults(), context.metrics.traces

    def follow(self, pod: Obj, observed: ObservedPod | None) -> None:
        uid = uid_of(pod)
        wanted = {} if is_deleted(pod) else dict(_wanted_probes(pod, observed))
        mine = self._slots.get(uid, {})
        if not wanted and not mine:
            return
        for key in [key for key in mine if key not in wanted]:
            _cancel(mine.pop(key))
        address = (address_of(observed) if observed else "") or self._node_ip
        for key, (probe, container, running) in wanted.items():
            about = Probed(pod, container, running.id, address)
            if key in mine:
                mine[key].probe, mine[key].about = probe, about
            else:
                tally = Tally(_verdict_before(pod, running, probe.kind))
                mine[key] = _Slot(uid, probe, about, running.started_at, tally)
        self._slots[uid] = mine
        if not mine:
            self._slots.pop(uid)
        self._checks[uid] = None
        for slot in mine.values():
            self._schedule(slot)

    def checks(self, uid: str) -> Checks:
        found = self._checks.get(uid, NO_CHECKS)
        return self._summarize(uid) if found is None else found

    def end(self, uid: str, changed: Callable[[], object]) -> None:
        """As upstream: whoever still sends requests to a pod that ends must see when it is no
        longer ready; whether it lives does not matter any more."""
        slots = self._slots.get(uid, {}).values()
        for slot in slots:
            if slot.probe.kind is not Kind.READINESS:
                _cancel(slot)
        if slots:
            self._ending[uid] = changed

    def stop(self, uid: str) -> None:
        """Nothing of the pod runs any more: it stays as ready as it was, and is not probed."""
        self._ending.pop(uid, None)
        for slot in self._slots.get(uid, {}).values():
            _cancel(slot)

    def forget(self, uid: str) -> None:
        self.stop(uid)
        self._slots.pop(uid, None)
        self._checks.pop(uid, None)
        self._results.forget(uid)

    def close(self) -> None:
        """No more probes of anybody; results are not needed any more."""
        for uid in list(self._slots):
            self.forget(uid)

    def render(self) -> str:
        """What /metrics/probes shows."""
        return self._results.render()

    # When to look.

    def _schedule(self, slot: _Slot) -> None:
        """Set the timer of a probe that may run and has none yet."""
        if slot.timer is not None or slot.looking is not None:
            return
        if is_settled(slot.probe, slot.tally) or not self._may_run(slot):
            return
        now = self._clock.now()
        if not slot.due:
            slot.due = first_due(slot.probe, slot.started_at, now, self._rng.random())
            if self._looks_early and slot.tally.verdict is None:
                slot.early = early_looks(slot.probe, slot.started_at, now)
        moment = slot.early[0] if slot.early else slot.due
        # A clock that was set back must not silence a probe until it has caught up.
        longest = max(slot.probe.delay_seconds, slot.probe.period_seconds)
        wait = min(max(0.0, moment - now), longest)
        slot.timer = asyncio.get_running_loop().call_later(wait, self._due, slot)

    def _may_run(self, slot: _Slot) -> bool:
        if slot.uid in self._ending and slot.probe.kind is not Kind.READINESS:
            return False
        if slot.probe.kind is Kind.STARTUP:
            return True
        startup = self._slots.get(slot.uid, {}).get((slot.about.id, Kind.STARTUP))
        return startup is None or startup.tally.verdict is True

    def _due(self, slot: _Slot) -> None:
        slot.timer = None
        name = f"{slot.probe.kind} probe of {slot.about.container['name']}"
        slot.looking = self._tasks.start(name, self._look(slot))

    async def _look(self, slot: _Slot) -> None:
        if len(self._slots.get(slot.uid, ())) > MANY:
            await give_way()  # all of them may be due at the same time
        early = bool(slot.early)
        slot.looks += 1
        began = self._clock.now()
        finding = await self._found(slot, quiet=early)
        slot.looking = None
        if early:
            slot.early.pop(0)
        else:
            slot.due = max(began + slot.probe.period_seconds, self._clock.now())
        if finding is not None and (finding.success or not early):
            if early:
                slot.early.clear()
                slot.due = self._clock.now() + slot.probe.period_seconds
            self._count(slot, finding)
        self._schedule(slot)

    # What was found.

    async def _found(self, slot: _Slot, *, quiet: bool) -> Finding | None:
        """None: nothing was found out, or it was too early for a failure to mean something."""
        probe, about = slot.probe, slot.about
        began = self._clock.monotonic()
        try:
            finding = await self._try(probe, about, 1 if quiet else TRIES)
        except ProbeError as error:
            if not quiet:
                self._results.add(probe.kind, about, UNKNOWN, self._clock.monotonic() - began)
                self._tell(slot, "Unhealthy", f"errored and resulted in unknown state: {error}")
            return None
        if finding.warning:
            self._tell(slot, "ProbeWarning", f"warning: {finding.output}")
        elif not finding.success and not quiet:
            self._tell(slot, "Unhealthy", f"failed: {finding.output}")
        if finding.success or not quiet:
            word = SUCCESSFUL if finding.success else FAILED
            self._results.add(probe.kind, about, word, self._clock.monotonic() - began)
        return finding

    async def _try(self, probe: Probe, about: Probed, times: int) -> Finding:
        for left in reversed(range(times)):
            try:
                return await self._check(probe, about)
            except ProbeError:
                if not left:
                    raise
        raise AssertionError("a probe is tried at least once")

    def _tell(self, slot: _Slot, reason: str, message: str) -> None:
        text = f"{slot.probe.kind.capitalize()} probe {message}"
        name = slot.about.container["name"]
        self._events.warning(slot.about.pod, reason, text, container=name)

    def _count(self, slot: _Slot, finding: Finding) -> None:
        before = slot.tally.verdict
        slot.tally = count(slot.probe, slot.tally, finding.success)
        if slot.tally.verdict is before:
            return
        self._trace(slot)
        uid, mine = slot.uid, self._slots.get(slot.uid, {})
        self._checks[uid] = None
        if slot.probe.kind is Kind.STARTUP and slot.tally.verdict:
            waited = (mine.get((slot.about.id, kind)) for kind in Kind)
            for other in [each for each in waited if each is not None]:
                self._schedule(other)
        if uid in self._ending:
            if uid not in self._telling:  # of many, once
                self._telling.add(uid)
                asyncio.get_running_loop().call_soon(self._tell_end, uid)
        elif slot.probe.kind is not Kind.LIVENESS or not slot.tally.verdict:
            self._wake(uid)

    def _tell_end(self, uid: str) -> None:
        self._telling.discard(uid)
        if uid in self._ending:
            self._ending[uid]()

    def _trace(self, slot: _Slot) -> None:
        """What the pod waited for: from the container's start, or the last verdict, to this."""
        name = f"{slot.probe.kind} probe of {slot.about.container['name']}"
        word = SUCCESSFUL if slot.tally.verdict else FAILED
        since = slot.since or slot.started_at
        self._traces.span(
            slot.uid, LANE, name, since, result=word, looks=str(slot.looks),
            period=f"{slot.probe.period_seconds:g} s",
        )  # fmt: skip
        slot.since, slot.looks = self._clock.now(), 0

    def _summarize(self, uid: str) -> Checks:
        doomed: dict[str, str] = {}
        started: dict[str, bool] = {}
        ready: dict[str, bool] = {}
        for (container_id, kind), slot in self._slots.get(uid, {}).items():
            verdict = slot.tally.verdict
            if kind is Kind.READINESS:
                ready[container_id] = bool(verdict)
                continue
            if verdict is False:
                doomed[container_id] = str(kind)
            if kind is Kind.STARTUP:
                started[container_id] = bool(verdict)
        if not (doomed or started or ready):
            self._checks.pop(uid, None)
            return NO_CHECKS
        found = self._checks[uid] = Checks(doomed, started, ready)
        return found


def _wanted_probes(
    pod: Obj, observed: ObservedPod | None
) -> Iterator[tuple[Key, tuple[Probe, Obj, ContainerStatus]]]:
    for role, container in with_roles(pod):
        if role in (Role.INIT, Role.EPHEMERAL) or PROBES.isdisjoint(container):
            continue
        running = latest(observed, container["name"])
        if running is None or running.state is not ContainerState.RUNNING:
            continue
        for probe in probes_of(pod, container):
            yield (running.id, probe.kind), (probe, container, running)


def _verdict_before(pod: Obj, running: ContainerStatus, kind: Kind) -> bool | None:
    """What the API shows of this very container: we may have been restarted since."""
    status = pod.get("status") or {}
    for name in ("containerStatuses", "initContainerStatuses"):
        item = status_named(status.get(name), running.name)
        if item.get("containerID", "").endswith(running.id) and item:
            shown = {Kind.STARTUP: "started", Kind.READINESS: "ready"}.get(kind, "")
            return True if item.get(shown) else None
    return None


def _cancel(slot: _Slot) -> None:
    if slot.timer is not None:
        slot.timer.cancel()
        slot.timer = None
    if slot.looking is not None:
        slot.looking.cancel()
        slot.looking = None

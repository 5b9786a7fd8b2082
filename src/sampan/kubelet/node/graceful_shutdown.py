"""Graceful node shutdown: pods are terminated by priority while the machine goes down.

Job: on the way down end the pods, the least important first, each group within its own time.
Invariant: a group begins when the one before it has ended, or its time is over.
Invariant: no pod gets more grace than its own, nor more than its group's time.
Owner: Kubelet; whoever stops the node calls `run` once, before the agent itself is stopped.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sampan.api.objects import Obj, uid_of
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.spec import grace_seconds_of
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.node.shutdown_steps import ShutdownStep, group_by_step
from sampan.kubelet.pods.pod_state import Cause

log = get_logger(__name__)

_MESSAGE = "Pod was terminated in response to imminent node shutdown."
TERMINATED = Verdict("Terminated", _MESSAGE, disruption=_MESSAGE)
# What the last statuses may take to reach the API; nobody waits for an API that is gone.
LAST_WORDS_SECONDS = 5.0


class Ending(Protocol):
    """As much of PodWorkers as is needed here."""

    def active_pods(self) -> list[Obj]: ...

    def kill(
        self, uid: str, grace_seconds: float, cause: Cause, verdict: Verdict | None = None
    ) -> None: ...

    async def ended(self, uids: Iterable[str]) -> None: ...


class NodeShutdown:
    def __init__(
        self,
        steps: Sequence[ShutdownStep],
        workers: Ending,
        *,
        begins: Callable[[], None],
        all_told: Callable[[], bool],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """`begins` makes the node say so and take no more pods; `all_told`: is there no status
        left that has to be written?"""
        self._steps, self._workers, self._clock = steps, workers, clock
        self._begins, self._all_told = begins, all_told
        self._start_time = metrics.gauge(
            "kubelet_graceful_shutdown_start_time_seconds",
            "Last graceful shutdown start time since unix epoch in seconds",
        )
        self._end_time = metrics.gauge(
            "kubelet_graceful_shutdown_end_time_seconds",
            "Last graceful shutdown end time since unix epoch in seconds",
        )

    async def run(self) -> None:
        """Returns when every pod has ended, or had its time. Without steps at once."""
        if not self._steps:
            return
        self._begins()
        self._start_time.set(self._clock.now())
        log.info("graceful node shutdown begins", steps=len(self._steps))
        for step, pods in group_by_step(self._steps, self._workers.active_pods()):
            if pods:
                await self._end(step, pods)
        await self._last_words()
        self._end_time.set(self._clock.now())
        log.info("graceful node shutdown ended")

    async def _end(self, step: ShutdownStep, pods: Sequence[Obj]) -> None:
        for pod in pods:
            grace = min(step.seconds, grace_seconds_of(pod))
            self._workers.kill(uid_of(pod), grace, Cause.EVICTED, TERMINATED)
        try:
            async with asyncio.timeout(step.seconds):
                await self._workers.ended([uid_of(pod) for pod in pods])
        except TimeoutError:
            log.warning("pods did not end in time", priority=step.priority, seconds=step.seconds)

    async def _last_words(self) -> None:
        deadline = self._clock.monotonic() + LAST_WORDS_SECONDS
        while not self._all_told() and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.02)

"""Pleg: the pod lifecycle event generator. Runtime events first, a slow relist as safety net.

Job: keep RuntimeHealth true, wake the pods that something happened to, find orphans.
Invariant: an event wakes its own pod only; a broken stream makes us look at everything.
Invariant: with a healthy stream nothing is asked more often than every `relist_seconds`.
Owner: Kubelet runs it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field

from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass
from sampan.core.flag import Flag
from sampan.core.log import get_logger
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import (
    ObservedPod,
    RuntimeEvent,
    RuntimeFailure,
    RuntimeFeatures,
    RuntimeInfo,
)
from sampan.kubelet.runtime.observed import Observations

log = get_logger(__name__)

# Gentle at first: a runtime that is just starting answers within milliseconds of being there.
RETRY = Backoff(first_seconds=0.02, cap_seconds=5.0, factor=1.3)
RECONNECT = Backoff(first_seconds=0.1, cap_seconds=5.0)


@dataclass(slots=True)
class RuntimeHealth:
    """What the runtime last said about itself. Written here, read by heartbeat and sync."""

    runtime_name: str = "containerd"
    version: str = ""
    ready: bool = False
    network_ready: bool = False
    message: str = "container runtime status check may not have completed yet"
    answered: bool = False
    features: RuntimeFeatures = field(default_factory=RuntimeFeatures)


class Pleg:
    def __init__(
        self,
        context: NodeContext,
        *,
        observations: Observations,
        health: RuntimeHealth,
        wake: Callable[[str], None],
        found: Callable[[Sequence[ObservedPod]], None],
        health_changed: Callable[[], None],
    ) -> None:
        self._settings, self._runtime, self._clock = (
            context.settings, context.runtime, context.clock
        )  # fmt: skip
        self._observations, self._health = observations, health
        self._wake, self._found, self._health_changed = wake, found, health_changed
        self._poked = Flag()
        self._streaming = False
        self._sure = False  # everything was looked at since the stream began
        self._seconds = context.metrics.histogram(
            "kubelet_pleg_relist_duration_seconds",
            "Duration in seconds for relisting pods in PLEG.",
        )
        self.last_look = 0.0  # monotonic; for the health check of the loop

    async def run(self) -> None:
        """Until cancelled: ask how the runtime is, and look at everything, now and then."""
        failures = 0
        while True:
            self._poked.clear()
            healthy = await self._check()
            failures = 0 if healthy else failures + 1
            if not healthy:
                pause = RETRY.delay(failures)
            elif self._streaming and self._sure:
                pause = self._settings.relist_seconds
            else:
                # A new stream may have missed what happened just before it was there.
                self._sure = self._streaming
                pause = self._settings.relist_blind_seconds
            await self._sleep(pause)

    def look_soon(self) -> None:
        self._poked.set()

    async def look_once(self) -> None:
        """For a runtime that loses no event, and is there for as long as its node."""
        await self._check()

    async def watch_events(self) -> None:
        """Until cancelled: wake pods as the runtime tells of them."""
        failures = 0
        while True:
            try:
                await self._follow()
                failures = 0
            except RuntimeFailure as error:
                failures += 1
                if failures == 1:
                    log.info("runtime event stream broke, reconnecting", error=error)
            self._streaming = False
            self._poked.set()
            await self._clock.sleep(RECONNECT.delay(max(failures, 1)))

    async def _follow(self) -> None:
        self._streaming, self._sure = True, False
        self._poked.set()
        async for event in self._runtime.events():
            self.hear(event)

    def hear(self, event: RuntimeEvent) -> None:
        if not event.uid:
            self._poked.set()
        elif self._observations.is_news(event):
            self._wake(event.uid)

    async def _check(self) -> bool:
        try:
            info = await self._runtime.info()
            await self._look()
        except RuntimeFailure as error:
            self._take(None, str(error))
            return False
        self._take(info, info.message)
        return info.ready and info.network_ready

    async def _look(self) -> None:
        began = self._clock.monotonic()
        changed, found = await self._observations.changed()
        self._seconds.observe(self._clock.monotonic() - began)
        self.last_look = self._clock.monotonic()
        self._found(found)
        for uid in changed:
            self._wake(uid)

    def _take(self, info: RuntimeInfo | None, message: str) -> None:
        health = self._health
        before = (health.ready, health.network_ready, health.message)
        health.ready = info is not None and info.ready
        health.network_ready = info is not None and info.network_ready
        health.message = message
        if info is not None:
            health.runtime_name, health.version, health.answered = info.name, info.version, True
            health.features = info.features
        if before != (health.ready, health.network_ready, health.message):
            log.info(
                "container runtime health changed",
                ready=health.ready,
                network=health.network_ready,
                why=message,
            )
            self._health_changed()

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._poked.wait()
        except TimeoutError:
            return

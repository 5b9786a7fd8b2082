"""From a chosen node to a bound pod: reserve, permit, volumes, bind; or everything undone.

Job: the cycle's second half, in the background.
Invariant: what was assumed for a binding that failed is taken back before the pod is tried again.
Invariant: a bound pod that is never seen on its node does not hold its room for ever.
Owner: the scheduler's loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from sampan.api.errors import ApiError, Conflict, NotFound
from sampan.api.objects import Obj, key_of, name_of, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.scheduler.binding.api_call_limiter import CALL_SECONDS
from sampan.scheduler.binding.bind import FAILED, UNSCHEDULABLE, bind
from sampan.scheduler.binding.bind_devices import DeviceBinder, DevicePromise, DevicesNotBound
from sampan.scheduler.binding.bind_volumes import Promise, VolumeBinder, VolumesNotBound
from sampan.scheduler.binding.cycle_parts import CycleParts
from sampan.scheduler.binding.permits import NotPermitted, Permits
from sampan.scheduler.devices.devices import DeviceClaim
from sampan.scheduler.metrics import ERROR, LANE, SCHEDULED, UNSCHEDULED
from sampan.scheduler.model.assigned_pod import once_assigned
from sampan.scheduler.model.cluster_events import DevicesChanged
from sampan.scheduler.model.pod_info import scheduler_of
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import Profile
from sampan.scheduler.queue.queue_state import Waiting

CONFIRM_SECONDS = 900.0  # how long after its binding a pod may stay unseen

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Placing:
    """A pod on its way to a node."""

    pod: Obj
    waiting: Waiting
    node: str
    volumes: Promise
    devices: DevicePromise | None
    started: float


class Bindings:
    def __init__(
        self,
        parts: CycleParts,
        profiles: Mapping[str, Profile],
        plugins: Mapping[str, Sequence[tuple[Plugin, int]]],
        permits: Permits,
    ) -> None:
        client, cache = parts.client, parts.cache
        self._client, self._clock, self._cache = client, parts.clock, cache
        self._pending, self._reports, self._measures = parts.pending, parts.reports, parts.measures
        self._calls, self._outside, self._permits = parts.calls, parts.outside, permits
        self._intake = parts.intake
        self._profiles = profiles
        self._plugins = {name: [item for item, _ in those] for name, those in plugins.items()}
        self.volumes = VolumeBinder(client, cache.columns.volumes)
        self.devices = DeviceBinder(client, cache.columns.devices)
        self._unconfirmed: dict[str, float] = {}  # bound pods → when they are given up

    async def place(self, pod: Obj, waiting: Waiting, node: str, started: float) -> None:
        """Whoever calls it has the intake's turn."""
        row = waiting.pod
        nodes = self._cache.snapshot()
        promise = self.volumes.promise(row.shape, nodes, node)
        devices = self.devices.promise(row.shape, nodes, node)
        assume = partial(self._cache.assume, row.uid, node, once_assigned(row))
        if row.shape.is_long:
            await self._intake.alone(assume)
        else:
            assume()
        self._pending.nominator.remove(row.uid)
        plugins = self._plugins[row.scheduler]
        try:
            for plugin in plugins:
                if (why := plugin.reserve(pod, node)) is not None:
                    raise NotPermitted(plugin.name, why)
            must_wait = self._permits.ask(plugins, pod, node)
        except NotPermitted as error:
            self._undo(pod, node, promise, devices)
            self._not_bound(pod, node, error, started)
            return
        placing = Placing(pod, waiting, node, promise, devices, started)
        self._calls.start("bind", self._bind(placing, must_wait))

    def confirmed(self, uid: str) -> None:
        """The API has said where the pod is, or that it is gone."""
        self._unconfirmed.pop(uid, None)

    def gone(self, uid: str) -> None:
        """There is no such pod any more; what is waited for on its behalf is not."""
        self.confirmed(uid)
        self.volumes.changed()

    def next_expiry(self) -> float | None:
        return next(iter(self._unconfirmed.values()), None)

    def expire(self) -> None:
        """Bindings that were answered and never seen."""
        now = self._clock.monotonic()
        for uid in [item for item, until in self._unconfirmed.items() if until <= now]:
            del self._unconfirmed[uid]
            log.warning("assumed pod expired: its binding was never observed", uid=uid)
            self._pending.undone(uid)

    async def _bind(self, placing: Placing, must_wait: bool) -> None:
        pod, node = placing.pod, placing.node
        uid, scheduler = placing.waiting.pod.uid, placing.waiting.pod.scheduler
        plugins, traces = self._plugins[scheduler], self._measures.traces
        began, step = traces.now(), ""
        if must_wait or placing.volumes.claims or placing.devices is not None:
            await self._reports.expected(pod, node)
        try:
            if must_wait:
                async with self._calls.not_counted():
                    await self._permits.answered(uid)
                traces.span(uid, LANE, "permit", began)
            if placing.volumes.claims:
                step = 'PreBind plugin "VolumeBinding"'
                await self._bind_volumes(placing)
                traces.span(uid, LANE, "bind volumes", began)
            async with asyncio.timeout(CALL_SECONDS):
                if placing.devices is not None:
                    step = 'PreBind plugin "DynamicResources"'
                    await self.devices.write(placing.devices, pod)
                for plugin in plugins:
                    step = f'PreBind plugin "{plugin.name}"'
                    await plugin.pre_bind(pod, node)
                step = 'Bind plugin "DefaultBinder"'
                await self._bound_by_somebody(plugins, pod, node)
        except (ApiError, OSError, VolumesNotBound, DevicesNotBound, NotPermitted) as error:
            await self._intake.freed()
            self._undo(pod, node, placing.volumes, placing.devices)
            self._not_bound(pod, node, error, placing.started, step)
            if placing.devices is not None and placing.devices.written:
                await self._release(placing.devices, pod)
            return
        traces.span(uid, LANE, "bind", began, node=node)
        self._bound(placing)
        for plugin in plugins:
            await plugin.post_bind(pod, node)

    def _bound(self, placing: Placing) -> None:
        now, row = self._clock.monotonic(), placing.waiting.pod
        took = now - placing.started
        if row.uid in self._pending.queue:  # else its confirmation was here before the answer
            self._unconfirmed[row.uid] = now + CONFIRM_SECONDS
        self._pending.remove(row.uid)
        self._measures.attempted(SCHEDULED, took, row.scheduler)
        self._measures.scheduled(placing.waiting, now)
        log.info("pod bound", pod=row.key, node=placing.node, took_seconds=took)
        self._reports.scheduled(placing.pod, placing.node)

    async def deallocate(self, claim: DeviceClaim) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self.devices.deallocate(claim)
        except (ApiError, OSError) as error:
            # It has changed, or is gone: the watch will say so, and the pod tries again.
            log.debug("a claim was not deallocated", claim=claim.key, error=error)

    async def _release(self, devices: DevicePromise, pod: Obj) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self.devices.release(devices, pod)
        except (ApiError, OSError) as error:
            # The controller of claims releases them when the pod is gone.
            log.warning("devices were not released", pod=key_of(pod), error=error)

    async def _bound_by_somebody(self, plugins: Sequence[Plugin], pod: Obj, node: str) -> None:
        for plugin in plugins:
            if await plugin.bind(pod, node):
                return
        if not await self._outside.bound(pod, node):
            await bind(self._client, pod, node)

    async def _bind_volumes(self, placing: Placing) -> None:
        pod, row = placing.pod, placing.waiting.pod
        async with asyncio.timeout(CALL_SECONDS):
            await self.volumes.write(placing.volumes)
        longest = self._profiles[row.scheduler].volume_seconds
        try:
            async with self._calls.not_counted(), asyncio.timeout(longest):
                await self.volumes.bound(
                    placing.volumes, name_of(pod), lambda: row.uid in self._pending.objects
                )
        except VolumesNotBound as error:
            raise VolumesNotBound(f"binding volumes: {error}") from error
        except TimeoutError as error:
            raise VolumesNotBound("binding volumes: context deadline exceeded") from error

    def _undo(self, pod: Obj, node: str, volumes: Promise, devices: DevicePromise | None) -> None:
        self.volumes.take_back(volumes)
        if devices is not None:
            self.devices.take_back(devices)
            self._pending.happened(DevicesChanged(key_of(pod)))
        for plugin in reversed(self._plugins[scheduler_of(pod)]):
            plugin.unreserve(pod, node)

    def _not_bound(
        self, pod: Obj, node: str, error: Exception, started: float, step: str = ""
    ) -> None:
        uid = uid_of(pod)
        now = self._clock.monotonic()
        # As upstream: first the room is given back, then the pod may try again.
        self._pending.undone(uid)
        denied = isinstance(error, NotPermitted)
        if isinstance(error, NotPermitted):
            self._pending.queue.refused(uid, frozenset({error.plugin}), now)
        else:
            self._pending.queue.failed(uid, now)
        self._pending.wake()
        result = UNSCHEDULED if denied else ERROR
        self._measures.attempted(result, now - started, scheduler_of(pod))
        if isinstance(error, Conflict | NotFound):
            # Somebody else bound it, or it is gone: the watch will say so.
            log.debug("pod was not bound", pod=key_of(pod), node=node, error=error)
            return
        log.warning("pod was not bound", pod=key_of(pod), node=node, error=error)
        why = f"0/1 nodes are available: 1 {error}." if denied else f"running {step}: {error}"
        self._reports.failed(pod, why)
        # By now the API may name this node in the pod's status, whatever this object says.
        named = {**pod, "status": {**(pod.get("status") or {}), "nominatedNodeName": node}}
        self._reports.not_scheduled(named, UNSCHEDULABLE if denied else FAILED, why, "")

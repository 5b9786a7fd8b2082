"""Events of the scheduler, and the PodScheduled condition.

Job: a finding → an event and, where it is news, a write of the pod's status in the background.
Invariant: a write that fails holds up nobody: the next attempt says it again.
Owner: the scheduler's loop.
"""

import asyncio

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, key_of
from sampan.client.contract import Client
from sampan.client.events import EventRecorder, reference
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.scheduler.binding.api_call_limiter import CALL_SECONDS, Calls
from sampan.scheduler.binding.bind import nominated, not_scheduled, write_status

log = get_logger(__name__)


NOTE_CHARACTERS = 1024  # as upstream: what events.k8s.io takes


def note(message: str) -> str:
    if len(message) <= NOTE_CHARACTERS:
        return message
    end = " ..."
    return message[: NOTE_CHARACTERS - len(end)] + end


class Reports:
    def __init__(self, client: Client, clock: Clock, events: EventRecorder, calls: Calls) -> None:
        self._client, self._clock, self.events, self._calls = client, clock, events, calls

    def failed(self, pod: Obj, why: str) -> None:
        self.events.record(reference(pod), "Warning", "FailedScheduling", note(why))

    def scheduled(self, pod: Obj, node: str) -> None:
        where = f"Successfully assigned {key_of(pod)} to {node}"
        self.events.record(reference(pod), "Normal", "Scheduled", where)

    def not_scheduled(self, pod: Obj, reason: str, why: str, node: str | None = None) -> None:
        """`node`: nominated, as bind.not_scheduled takes it."""
        patch = not_scheduled(pod, reason, why, self._clock.now(), node)
        if patch is not None:
            self._calls.start("status", self._write(pod, patch))

    def not_nominated(self, pod: Obj) -> None:
        patch = nominated(pod, "")
        if patch is not None:
            self._calls.start("status", self._write(pod, patch))

    async def expected(self, pod: Obj, node: str) -> None:
        """Whoever else counts nodes (autoscalers) is told before what may take long begins."""
        patch = nominated(pod, node)
        if patch is not None:
            await self._write(pod, patch)

    async def _write(self, pod: Obj, patch: Obj) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await write_status(self._client, pod, patch)
        except (ApiError, OSError) as error:
            # The pod is gone, or the API is: the next attempt says it again.
            log.debug("pod condition was not written", pod=key_of(pod), error=error)

"""Permit: pods that wait until plugins allow or reject them.

Job: keep who waits; let plugins allow or reject them.
Invariant: a pod that waits is answered once: allowed, rejected, or out of time.
Owner: the scheduler's loop.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from sampan.api.objects import Obj, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.plugin import Deny, Plugin, Wait, WaitingPod


class NotPermitted(Exception):
    """`plugin` did not let the pod go to its node."""

    def __init__(self, plugin: str, why: str) -> None:
        super().__init__(why)
        self.plugin = plugin


@dataclass(slots=True)
class _Waiting:
    pod: WaitingPod
    seconds: dict[str, float]  # by plugin that has not answered
    answer: asyncio.Event
    rejected: NotPermitted | None = None


class Permits:
    """Also what plugins know of the scheduler (plugin.Handle)."""

    def __init__(self, cache: CacheState, reconsider: Callable[[str], None]) -> None:
        self._cache = cache
        self.reconsider = reconsider
        self._waiting: dict[str, _Waiting] = {}

    def ask(self, plugins: Iterable[Plugin], pod: Obj, node: str) -> bool:
        """Whether somebody wants the pod to wait; raises NotPermitted."""
        uid = uid_of(pod)
        seconds: dict[str, float] = {}
        # Known before the plugins are asked: the last one of a group may allow itself.
        one = self._waiting[uid] = _Waiting(WaitingPod(uid, pod, node), seconds, asyncio.Event())
        for plugin in plugins:
            match plugin.permit(pod, node):
                case Deny(why):
                    del self._waiting[uid]
                    raise NotPermitted(plugin.name, why)
                case Wait(longest):
                    seconds[plugin.name] = longest
                case _:
                    pass
        if one.rejected is not None:
            del self._waiting[uid]
            raise one.rejected
        if not seconds or one.answer.is_set():
            del self._waiting[uid]
            return False
        return True

    async def answered(self, uid: str) -> None:
        one = self._waiting[uid]
        name, longest = min(one.seconds.items(), key=lambda pair: pair[1])
        try:
            async with asyncio.timeout(longest):
                await one.answer.wait()
        except TimeoutError as error:
            why = f"rejected due to timeout after waiting {longest:g}s at plugin {name}"
            raise NotPermitted(name, why) from error
        finally:
            self._waiting.pop(uid, None)
        if one.rejected is not None:
            raise one.rejected

    def waiting(self) -> Iterable[WaitingPod]:
        return [item.pod for item in self._waiting.values()]

    def allow(self, uid: str) -> None:
        if uid in self._waiting:
            self._waiting[uid].answer.set()

    def reject(self, uid: str, why: str) -> None:
        one = self._waiting.get(uid)
        if one is not None:
            one.rejected = NotPermitted(next(iter(one.seconds), "a plugin"), why)
            one.answer.set()

    def placed(self, namespace: str, labels: Mapping[str, str]) -> int:
        return sum(
            pod.namespace == namespace and labels.items() <= dict(pod.labels).items()
            for pod in self._cache.columns.table.pods
            if pod is not None
        )

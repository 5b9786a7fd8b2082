"""The cgroups of pods, changed beside the loop: the kernel (or systemd) takes its time.

Job: each change of `Cgroups` as something to wait for.
Invariant: one at a time, in the order in which they were asked for; so what a pod that ends has
    removed was not made after that.
Owner: Kubelet.
"""

from collections.abc import Callable, Iterable
from functools import partial

from sampan.api.objects import Obj
from sampan.core.side_thread import SideThread
from sampan.kubelet.cgroups.pod_cgroups import Cgroups, MemoryUsage


class CgroupThread:
    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups, self._thread = cgroups, SideThread("cgroups")

    async def ensure(self, pod: Obj, *, has_quota: bool = True) -> None:
        """Raises CgroupFailure."""
        await self._thread.run(partial(self._cgroups.ensure, pod, has_quota=has_quota))

    async def make_room(self, pod: Obj) -> None:
        """Raises CgroupFailure."""
        await self._thread.run(partial(self._cgroups.make_room, pod))

    async def memory_usage(self, uid: str, containers: Iterable[str]) -> MemoryUsage:
        return await self._thread.run(partial(self._cgroups.memory_usage, uid, containers))

    async def remove(self, uid: str) -> None:
        """Raises CgroupFailure."""
        await self._thread.run(partial(self._cgroups.remove, uid))

    async def kill(self, uid: str) -> int:
        return await self._thread.run(partial(self._cgroups.kill, uid))

    async def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        """`is_known` is asked in the thread."""
        await self._thread.run(partial(self._cgroups.remove_orphans, is_known))

    def close(self) -> None:
        """What has begun comes to its end."""
        self._thread.close()

"""How the pods of a real node end with it: as when a machine is switched off.

Job: stop containers and sandboxes, unmount volumes, remove cgroups; what fails is said.
Invariant: containers end, the API's objects stay; none of them says that it is ready.
Invariant: nobody waits any longer once the user hurries.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sampan.api.errors import ApiError, Conflict, NotFound
from sampan.api.objects import Obj, name_of, namespace_of, time_text, uid_of
from sampan.api.resources import PODS
from sampan.api.rules.pods import is_ready
from sampan.client.contract import Client
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.progress import Progress
from sampan.core.log import get_logger
from sampan.core.tasks import all_of

if TYPE_CHECKING:
    from sampan.kubelet.contracts.runtime import ObservedPod, Runtime

STOP_GRACE_SECONDS = 10.0
TELL_SECONDS = 2.0
log = get_logger(__name__)


class PodsEnd:
    def __init__(self, data: DataDir, progress: Progress) -> None:
        self._data, self._progress = data, progress
        self._grace_seconds = STOP_GRACE_SECONDS
        self._stopping: list[asyncio.Timeout] = []  # one for all that takes its time to end

    def hurry(self) -> None:
        self._grace_seconds = 0.0
        now = asyncio.get_running_loop().time()
        for gentle in self._stopping:
            gentle.reschedule(now)

    async def shut_down(self, pods_end_in_order: Callable[[], Awaitable[None]]) -> None:
        """Where a time for it is set: pods end in order, and say why, until the user hurries."""
        if self._grace_seconds == 0:
            return
        try:
            async with asyncio.timeout(None) as gentle:
                self._stopping.append(gentle)
                await pods_end_in_order()
        except TimeoutError:
            self._progress.warn("the shutdown was cut short: some pods have not said why they end")
        finally:
            self._stopping.remove(gentle)

    async def stop(self, runtime: "Runtime") -> None:
        await self._stop_pods(runtime)
        await self._unmount_volumes()

    async def tell(self, client: Client, node: str, now: float) -> None:
        """What no longer runs is not ready: else the next start would find Deployments available
        before any of their containers is."""
        try:
            async with asyncio.timeout(TELL_SECONDS):
                listed = await client.list(PODS, field_selector=f"spec.nodeName={node}")
                await all_of(_tell(client, pod, now) for pod in listed.items if is_ready(pod))
        except (ApiError, OSError, TimeoutError) as error:
            log.info("status of stopped pods was not written, they still look ready", error=error)

    async def _stop_pods(self, runtime: "Runtime") -> None:
        from sampan.kubelet.contracts.runtime import RuntimeFailure

        try:
            pods = await runtime.pods()
            running = [pod for pod in pods if any(sandbox.ready for sandbox in pod.sandboxes)]
            if not running:
                return
            with self._progress.step("pods") as step:
                await all_of(self._stop_pod(runtime, pod) for pod in running)
                step.detail = f"{len(running)} stopped"
        except RuntimeFailure as error:
            self._progress.warn(f"some containers may still run: {error}")

    async def _stop_pod(self, runtime: "Runtime", pod: "ObservedPod") -> None:
        try:
            async with asyncio.timeout(None) as gentle:
                self._stopping.append(gentle)
                await _stop_containers(runtime, pod, self._grace_seconds)
        except TimeoutError:
            await _stop_containers(runtime, pod, 0.0)
        finally:
            self._stopping.remove(gentle)
        for sandbox in pod.sandboxes:
            await runtime.stop_sandbox(sandbox.id)

    async def _unmount_volumes(self) -> None:
        """What is in memory goes with the machine's power, too."""
        from sampan.core.mounts import unmount_below

        try:
            await asyncio.to_thread(unmount_below, str(self._data.kubelet))
        except OSError as error:
            self._progress.warn(f"some volumes may still be mounted: {error}")


async def _tell(client: Client, pod: Obj, now: float) -> None:
    unready = {"status": "False", "lastTransitionTime": time_text(now)}
    conditions = [{"type": type_, **unready} for type_ in ("Ready", "ContainersReady")]
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": conditions}}
    with contextlib.suppress(NotFound, Conflict):  # another pod of that name
        await client.patch(PODS, namespace_of(pod), name_of(pod), patch, subresource="status")


async def _stop_containers(runtime: "Runtime", pod: "ObservedPod", grace_seconds: float) -> None:
    await all_of(
        runtime.stop_container(container.id, grace_seconds) for container in pod.containers
    )

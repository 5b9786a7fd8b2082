"""Resizes carried out: other limits for a pod and for containers that go on running.

Job: memory before cpu, what shrinks before what grows; the pod's own limits grow before those of
    its containers, and shrink after them. As upstream's doPodResizeAction.
Invariant: no memory limit is set below what is in use: the kernel would end the container.
Invariant: what was set is told, also where something after it failed.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pod_resources import quantities
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.cgroup_thread import CgroupThread
from sampan.kubelet.cgroups.limits import pod_limits
from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure
from sampan.kubelet.container_spec.linux_resources import NodeResources, linux_resources
from sampan.kubelet.contracts.resize_state import WHOLE, Applied, Resources, actual_resources
from sampan.kubelet.contracts.runtime import ContainerStatus, ObservedPod, Runtime, RuntimeFailure
from sampan.kubelet.contracts.spec import (
    RESIZABLE,
    find_container,
    pod_level_resources,
    resources_of,
)
from sampan.kubelet.pods.planning.actions import Update


class _NotFeasible(Exception):
    """It cannot be done now; it is tried again."""


@dataclass(frozen=True, slots=True)
class Resized:
    applied: Mapping[str, Resources]  # what containers have by now, by id
    error: str = ""


@dataclass(slots=True)
class _Target:
    """A container that is updated, and what it has so far."""

    update: Update
    spec: Obj
    has: Resources

    def towards(self, name: str) -> Resources:
        """As it will be when its `name` (cpu, memory) is what it was given."""
        wants = resources_of(self.spec)
        merged = {}
        for kind in ("requests", "limits"):
            kept = {key: text for key, text in self.has.get(kind, {}).items() if key != name}
            merged[kind] = kept | {
                key: text for key, text in wants.get(kind, {}).items() if key == name
            }
        return {kind: amounts for kind, amounts in merged.items() if amounts}


class Resizer:
    def __init__(self, runtime: Runtime, cgroups: CgroupThread | None, node: NodeResources) -> None:
        self._runtime, self._cgroups, self._node = runtime, cgroups, node

    async def resize(
        self, pod: Obj, updates: Sequence[Update], observed: ObservedPod, applied: Applied
    ) -> Resized:
        by_id = {container.id: container for container in observed.containers}
        targets = [_target(pod, update, by_id[update.id], applied) for update in updates]
        changed: dict[str, Resources] = {}
        try:
            if self._cgroups is not None:
                await self._check_memory(pod, targets, self._cgroups)
                await self._cgroups.make_room(pod)
            for name in reversed(RESIZABLE):
                await self._update(pod, name, targets, changed)
            if self._cgroups is not None:
                await self._cgroups.ensure(pod)
        except (RuntimeFailure, CgroupFailure, _NotFeasible) as error:
            return Resized(changed, str(error))
        if whole := pod_level_resources(pod):
            changed[WHOLE] = whole
        return Resized(changed)

    async def _update(
        self, pod: Obj, name: str, targets: Sequence[_Target], changed: dict[str, Resources]
    ) -> None:
        concerned = [target for target in targets if getattr(target.update, name)]
        for target in sorted(concerned, key=lambda target: int(getattr(target.update, name))):
            wanted = target.towards(name)
            given = {**target.spec, "resources": {**(target.spec.get("resources") or {}), **wanted}}
            limits = linux_resources(pod, given, self._node)
            await self._runtime.update_container(target.update.id, limits)
            target.has = changed[target.update.id] = wanted

    async def _check_memory(
        self, pod: Obj, targets: Sequence[_Target], cgroups: CgroupThread
    ) -> None:
        """Raises _NotFeasible."""
        lower = {
            target.update.id: limit
            for target in targets
            if (limit := _memory_limit(resources_of(target.spec)))
            and not limit >= _memory_limit(target.has) > 0
        }
        usage = await cgroups.memory_usage(uid_of(pod), lower)
        whole, used, problems = pod_limits(pod).memory_bytes, int(usage.pod), []
        if 0 < whole < usage.limit and whole <= usage.pod:
            problems.append(
                f"attempting to set pod memory limit ({whole}) below current usage ({used})"
            )
        for target in targets:
            limit = lower.get(target.update.id, 0)
            if 0 < limit <= usage.containers.get(target.update.id, 0):
                problems.append(
                    f'attempting to set container "{target.update.name}" memory limit ({limit}) '
                    f"below current usage ({used})"
                )
        if problems:
            said = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise _NotFeasible(f"cannot decrease memory limits: {said}")


def _target(pod: Obj, update: Update, running: ContainerStatus, applied: Applied) -> _Target:
    found = find_container(pod, update.name)
    assert found is not None, update.name
    return _Target(update, found[1], actual_resources(running, applied))


def _memory_limit(resources: Resources) -> int:
    found = quantities(resources.get("limits")).get("memory")
    return found.value() if found is not None else 0

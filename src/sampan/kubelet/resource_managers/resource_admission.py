"""Admission of pods that ask for devices, processors or memory of their own: as topology allows.

Job: gather what each provider of resources hints at, have the topology manager's policy decide,
    have each provider allocate; give containers what was granted, take it back with the pod.
Invariant: one pod at a time is admitted, in the order of their asking: nobody chooses from what
    another is about to get.
Invariant: a pod that is refused keeps nothing.
Owner: Kubelet; the pods' workers ask.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sampan.api.objects import Obj, key_of, uid_of
from sampan.api.rules.pods import containers, init_containers
from sampan.core.log import get_logger
from sampan.kubelet.contracts.resources_hook import NO_GRANTS, Grants, PodRefused
from sampan.kubelet.resource_managers.cpusets import Cpusets
from sampan.kubelet.resource_managers.managers import Managers
from sampan.kubelet.resource_managers.numa import Hint, Hints
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.resource_managers.topology_policies import (
    CONTAINER,
    NONE,
    POD,
    TopologySettings,
    merged,
)

log = get_logger(__name__)


class Provider(Protocol):
    """Who has something that containers may get of their own."""

    def concerns(self, pod: Obj) -> bool: ...

    def container_hints(self, pod: Obj, container: Obj) -> Hints: ...

    def pod_hints(self, pod: Obj) -> Hints: ...

    async def allocate(self, pod: Obj, container: Obj, affinity: Hint) -> None:
        """Repeated for what is allocated already, it changes nothing. Raises PodRefused."""

    async def grants(self, pod: Obj, container: Obj) -> Grants | None:
        """Raises GrantFailure."""

    def release(self, uid: str) -> None: ...

    def keep_only(self, is_known: Callable[[str], bool]) -> None: ...


class Devices(Provider, Protocol):
    def health(self, uid: str, container: str) -> Mapping[str, Mapping[str, bool]]:
        """By resource and device."""


class Claims(Protocol):
    """Who has claims prepared, that containers get devices of."""

    async def prepare(self, pod: Obj) -> None: ...

    async def grants(self, pod: Obj, container: Obj) -> Grants | None: ...

    async def unprepare(self, uid: str) -> None: ...

    def health(self, pod: Obj, container: str) -> Sequence[Obj]: ...

    def keep_only(self, is_known: Callable[[str], bool]) -> None: ...


class ResourceAdmission:
    def __init__(
        self,
        devices: Devices,
        managers: Managers,
        settings: TopologySettings,
        metrics: TopologyMetrics,
        *,
        cpusets: Cpusets | None = None,
        claims: Claims | None = None,
    ) -> None:
        others = (managers.cpu, managers.memory)
        # In upstream's order.
        self._devices = devices
        self._providers = [devices, *(one for one in others if one is not None)]
        self._numa, self._settings = managers.numa, settings
        self._managers, self._cpusets, self._claims = managers, cpusets, claims
        self._one_at_a_time = asyncio.Lock()
        self._admitted: set[str] = set()
        self._metrics = metrics

    def awaits(self, pod: Obj) -> bool:
        """Has it to be admitted before anything of it starts?"""
        return uid_of(pod) not in self._admitted and any(
            provider.concerns(pod) for provider in self._providers
        )

    async def admit(self, pod: Obj) -> None:
        """Raises PodRefused."""
        async with self._one_at_a_time:
            try:
                with self._metrics.admission():
                    await self._admit(pod)
            except PodRefused as refused:
                log.info("pod refused", pod=key_of(pod), why=refused)
                self.release(uid_of(pod))
                raise
            self._admitted.add(uid_of(pod))

    def goes_on(self, pod: Obj) -> None:
        """Its containers run since before this agent came, with what they have."""
        self._admitted.add(uid_of(pod))

    async def _admit(self, pod: Obj) -> None:
        aligns = self._settings.policy != NONE
        whole: Hint | None = None
        if aligns and self._settings.scope == POD:
            whole = self._decided([provider.pod_hints(pod) for provider in self._providers])
        for container in (*init_containers(pod), *containers(pod)):
            best = whole or Hint(None, True)
            if aligns and whole is None:
                best = self._decided(
                    [provider.container_hints(pod, container) for provider in self._providers]
                )
            for provider in self._providers:
                await provider.allocate(pod, container, best)
            self._metrics.aligned(CONTAINER)
        self._metrics.aligned(POD)

    def _decided(self, hints: Sequence[Hints]) -> Hint:
        """Raises PodRefused."""
        best, admitted = merged(hints, self._numa, self._settings)
        if admitted:
            return best
        self._metrics.aligned(self._settings.scope, is_aligned=False)
        raise PodRefused(
            "TopologyAffinityError", "Resources cannot be allocated with Topology locality"
        )

    async def grants(self, pod: Obj, container: Obj) -> Grants:
        """Raises GrantFailure."""
        found = NO_GRANTS
        place = (uid_of(pod), container["name"])
        for provider in self._providers:
            more = await provider.grants(pod, container)
            if more is not None:
                found = _together(found, more)
        if self._claims is not None:
            more = await self._claims.grants(pod, container)
            found = found if more is None else _together(found, more)
        if self._cpusets is not None:
            self._cpusets.granted(place, found.cpus)
        return found

    def started(self, uid: str, container: str, container_id: str) -> None:
        if self._cpusets is not None:
            self._cpusets.started((uid, container), container_id)

    def is_pinned(self, uid: str) -> bool:
        """Has the pod processors of its own?"""
        return self._managers.cpu is not None and self._managers.cpu.is_pinned(uid)

    async def prepare(self, pod: Obj) -> None:
        """What it claims is ready before its sandbox is made. Raises ClaimFailure."""
        if self._claims is not None:
            await self._claims.prepare(pod)

    async def unprepare(self, uid: str) -> None:
        """Its containers have ended. Raises ClaimFailure."""
        if self._claims is not None:
            await self._claims.unprepare(uid)

    def health(self, pod: Obj, container: str) -> list[Obj]:
        """ResourceStatuses of what it has, by their names."""
        found: list[Obj] = [
            {
                "name": resource,
                "resources": [
                    {"resourceID": device, "health": "Healthy" if healthy else "Unhealthy"}
                    for device, healthy in sorted(devices.items())
                ],
            }
            for resource, devices in self._devices.health(uid_of(pod), container).items()
        ]
        if self._claims is not None:
            found += self._claims.health(pod, container)
        return sorted(found, key=lambda item: str(item["name"]))

    def release(self, uid: str) -> None:
        self._admitted.discard(uid)
        for provider in self._providers:
            provider.release(uid)

    def keep_only(self, is_known: Callable[[str], bool]) -> None:
        """At the start: `is_known` says which uids are of pods that are wanted, or still here."""
        for provider in self._providers:
            provider.keep_only(is_known)
        if self._claims is not None:
            self._claims.keep_only(is_known)
        if self._cpusets is not None:
            self._cpusets.look()  # an earlier agent may have ended before everybody was moved


def _together(one: Grants, other: Grants) -> Grants:
    notes: Mapping[str, str] = {**other.annotations, **one.annotations}
    return Grants(
        (*one.env, *other.env),
        (*one.mounts, *other.mounts),
        (*one.devices, *other.devices),
        notes,
        (*one.cdi_devices, *other.cdi_devices),
        one.cpus or other.cpus,
        one.memory_nodes or other.memory_nodes,
        one.exclusive_cpus or other.exclusive_cpus,
    )

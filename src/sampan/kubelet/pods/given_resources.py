"""Grants of a pod's containers on its way up: claims, devices, processors.

Job: have its claims prepared before its sandbox, its devices and processors told to its containers;
    say what went wrong in a pod's words.
Owner: Performer.
"""

from sampan.api.objects import Obj, uid_of
from sampan.api.rules.pod_claims import claim_entries
from sampan.core.telemetry.traces import Traces
from sampan.kubelet.container_spec.generate import ConfigError
from sampan.kubelet.context import LANE
from sampan.kubelet.contracts.resources_hook import (
    NO_GRANTS,
    ClaimFailure,
    GrantFailure,
    Grants,
)
from sampan.kubelet.resource_managers.resource_admission import ResourceAdmission
from sampan.kubelet.status.recorder import PodEvents


class GivenResources:
    def __init__(
        self, resources: ResourceAdmission | None, events: PodEvents, traces: Traces
    ) -> None:
        """`resources` None: nothing is given to containers of their own."""
        self._resources, self._events, self._traces = resources, events, traces

    async def prepare(self, pod: Obj) -> bool:
        """Of its claims. False: not now."""
        if self._resources is None or not claim_entries(pod):
            return True
        preparing = self._resources.prepare(pod)
        try:
            await self._traces.timed(uid_of(pod), LANE, "claims", preparing)
        except ClaimFailure as error:
            message = f"Failed to prepare dynamic resources: {error}"
            self._events.warning(pod, "FailedPrepareDynamicResources", message)
            return False
        return True

    def has_quota(self, pod: Obj) -> bool:
        """As upstream: a pod with processors of its own is not held back."""
        return self._resources is None or not self._resources.is_pinned(uid_of(pod))

    async def grants(self, pod: Obj, container: Obj) -> Grants:
        """Raises ConfigError."""
        if self._resources is None:
            return NO_GRANTS
        try:
            return await self._resources.grants(pod, container)
        except GrantFailure as error:
            raise ConfigError(str(error)) from error

    def started(self, pod: Obj, container: str, container_id: str) -> None:
        if self._resources is not None:
            self._resources.started(uid_of(pod), container, container_id)

"""Volumes for the claims of a pod that found its node: promised, written, waited for.

Job: what VolumeBinding chose → API calls on volumes and claims, then wait until they are bound.
Invariant: what was promised is either written or taken back.
Owner: the scheduler's loop.
"""

import asyncio
from collections.abc import Callable

from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.api.rules.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from sampan.client.contract import Client
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.volume_binding import bindings
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.volumes import Claim, Volume, Volumes


class VolumesNotBound(Exception):
    """The pod must look for a node again."""


@dataclass(frozen=True, slots=True)
class Promise:
    node: str
    static: tuple[tuple[Claim, Volume], ...]  # volumes that exist
    dynamic: tuple[Claim, ...]  # to be provisioned

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (*(claim for claim, _ in self.static), *self.dynamic)


NOTHING = Promise("", (), ())


class VolumeBinder:
    def __init__(self, client: Client, volumes: Volumes) -> None:
        self._client, self._volumes = client, volumes
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """A claim or a volume changed, or a pod is gone: who waits looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def promise(self, pod: PodShape, nodes: Snapshot, node: str) -> Promise:
        if not pod.claims:
            return NOTHING
        chosen = bindings(pod, nodes, nodes.at[node])
        made = Promise(
            node,
            tuple((claim, volume) for claim, volume in chosen if volume is not None),
            tuple(claim for claim, volume in chosen if volume is None),
        )
        for claim, volume in made.static:
            self._volumes.promise(volume.name, claim.key)
        return made

    def take_back(self, made: Promise) -> None:
        for _, volume in made.static:
            self._volumes.take_back(volume.name)

    async def write(self, made: Promise) -> None:
        for claim, volume in made.static:
            namespace, _, name = claim.key.partition("/")
            reference = {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": namespace, "name": name, "uid": claim.uid,
            }  # fmt: skip
            patch = {
                "metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}},
                "spec": {"claimRef": reference},
            }
            if not volume.claim_uid:
                await self._client.patch(
                    PERSISTENT_VOLUMES, "", volume.name, patch, patch_type="merge"
                )
        for claim in made.dynamic:
            namespace, _, name = claim.key.partition("/")
            marks = {"metadata": {"annotations": {SELECTED_NODE: made.node}, "uid": claim.uid}}
            await self._client.patch(
                PERSISTENT_VOLUME_CLAIMS, namespace, name, marks, patch_type="merge"
            )

    async def bound(self, made: Promise, pod: str, is_there: Callable[[], bool]) -> None:
        """Returns when every claim is bound; raises VolumesNotBound when that cannot happen.
        `is_there`: whether the pod, of that name, still is."""
        marked: set[str] = set()
        while True:
            if not is_there():
                raise VolumesNotBound(f'pod does not exist any more: pod "{pod}" not found')
            waiting = [
                claim for claim in made.claims if not self._is_bound(claim, made.node, marked)
            ]
            if not waiting:
                return
            await self._changed.wait()

    def _is_bound(self, claim: Claim, node: str, marked: set[str]) -> bool:
        now = self._volumes.claims.get(claim.key)
        if now is None or now.uid != claim.uid:
            why = f'persistentvolumeclaim "{_name(claim)}" not found'
            raise VolumesNotBound(f"failed to check binding: {why}")
        if now.selected_node == node:
            marked.add(claim.key)
        elif claim.key in marked and not self._volumes.is_bound(now):
            raise VolumesNotBound(f'selectedNode annotation reset for PVC "{_name(claim)}"')
        return self._volumes.is_bound(now)


def _name(claim: Claim) -> str:
    return claim.key.partition("/")[2]

"""Volume manager of a real node: sets volumes up, keeps their content true, tears them down.

Job: gather what a plan needs (objects, tokens, bound volumes), have it carried out in a thread,
    remember what was made, so that unchanged pods cost nothing.
Invariant: for one pod one thing is done at a time, also when a step was cancelled in the middle:
    the next one waits for its end.
Owner: Kubelet; called by the pod's worker.
"""

import asyncio
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    key_of,
    labels_of,
    meta_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.api.rules.volumes.in_tree_volumes import IN_TREE
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import all_of, give_way
from sampan.kubelet.container_spec.environment import Surroundings
from sampan.kubelet.container_spec.generate import NodeFacts
from sampan.kubelet.contracts.runtime import Mount
from sampan.kubelet.contracts.spec import with_roles
from sampan.kubelet.contracts.volumes_hook import (
    MountedVolume,
    Objects,
    SubPathFailure,
    VolumeFailure,
)
from sampan.kubelet.csi.csi_volumes import CsiVolumes
from sampan.kubelet.volumes.payload import CertificateSources, Sources, Token, payload_room
from sampan.kubelet.volumes.plan import (
    HostPath,
    Node,
    OwnStep,
    Plugged,
    Step,
    bound_volume_name,
    plan_volumes,
    plugin_of,
)
from sampan.kubelet.volumes.projected_certificates import ProjectedCertificates
from sampan.kubelet.volumes.references import (
    CLAIM,
    claims_of,
    kind_of,
    volume_references,
    volumes_of,
)
from sampan.kubelet.volumes.set_up import release_sub_paths, set_up, tear_down
from sampan.kubelet.volumes.storage_operations import MOUNT, StorageOperations
from sampan.kubelet.volumes.sub_path import bind_sub_path, read_beneath
from sampan.kubelet.volumes.tokens import RETRY_SECONDS, Tokens, Wanted, wanted_of
from sampan.kubelet.volumes.tracked_objects import TrackedObjects

T = TypeVar("T")
log = get_logger(__name__)

ORPHAN_RETRY_SECONDS = 30.0
ENV_FILE_BYTES = 1 << 20
VOLUMES_PER_TURN, TOKENS_PER_TURN = 64, 4  # of the loop


@dataclass(frozen=True, slots=True)
class _Ready:
    """What was made for a pod, and from what."""

    volumes: Mapping[str, MountedVolume]
    made_from: object
    retry_at: float | None = None  # the last refresh failed


class NodeVolumes:
    def __init__(
        self,
        *,
        client: Client,
        objects: TrackedObjects,
        changed: Callable[[str], None],
        node: NodeFacts,
        clock: Clock,
        rng: random.Random,
        certificates: ProjectedCertificates,
        operations: StorageOperations,
        csi: CsiVolumes | None = None,
    ) -> None:
        """`changed` is called with the uid of a pod whose volumes must be looked at. `csi`: where
        there is an API that knows of drivers."""
        self._csi, self._certificates, self._operations = csi, certificates, operations
        self._client, self._objects, self._on_change = client, objects, changed
        self._clock = clock
        self._tokens = Tokens(client, clock=clock, rng=rng)
        around = Surroundings(node.node_name, node.node_ips, allocatable=node.allocatable)
        self._node = Node(node.root_dir, node.memory_bytes, around)
        self._ready: dict[str, _Ready] = {}
        self._running: dict[str, asyncio.Future[Any]] = {}

    async def objects(self, pod: Obj) -> Objects:
        found = await self._objects.of(pod, self._on_change)
        claims = () if uid_of(pod) in self._ready else tuple(claims_of(pod))
        return {**found, **{(CLAIM, claim): await self._claim(pod, claim) for _, claim in claims}}

    async def check(self, pod: Obj, objects: Objects) -> None:
        if volumes_of(pod) and uid_of(pod) not in self._ready:
            for step in await self._planned(pod, objects, {}, lambda projection: "", None):
                if isinstance(step, HostPath) and step.type:
                    await asyncio.to_thread(set_up, step, self._clock.now())

    async def _planned(
        self,
        pod: Obj,
        objects: Objects,
        bound: Mapping[str, Obj],
        token: Token,
        certificates: CertificateSources | None,
    ) -> list[Step]:
        """In parts, where they are many."""
        around = self._node.around
        sources = Sources(pod, objects, around, token, payload_room(), certificates)
        steps: list[Step] = []
        for step in plan_volumes(sources, bound, self._node):
            steps.append(step)
            if not len(steps) % VOLUMES_PER_TURN:
                await give_way()
        return steps

    async def prepare(self, pod: Obj, objects: Objects) -> Mapping[str, MountedVolume]:
        if not volumes_of(pod):
            return {}
        try:
            return await self._made(pod, objects)
        except VolumeFailure:
            ready = self._ready.get(uid_of(pod))
            if ready is None:
                raise
            return ready.volumes  # as upstream: what is mounted already holds no restart up

    async def _made(self, pod: Obj, objects: Objects) -> Mapping[str, MountedVolume]:
        uid, certificates = uid_of(pod), await self._certificates.of(pod)
        made_from = (_made_from(pod, objects), certificates)
        ready = self._ready.get(uid)
        if ready is not None and ready.made_from == made_from and not self._is_due(uid):
            return ready.volumes
        known = ready.volumes if ready is not None else {}
        wanted = pod if ready is None else _renewable(pod)
        bound, token = await self._bound(wanted, objects), await self._token_of(pod)
        steps = await self._planned(wanted, objects, bound, token, certificates)
        now = self._clock.now()
        own = [step for step in steps if not isinstance(step, Plugged)]
        plugged = [step for step in steps if isinstance(step, Plugged)]

        took: list[tuple[OwnStep, float]] = []  # the last one may have failed

        def make() -> dict[str, MountedVolume]:
            found = {}
            for step in own:
                took.append((step, self._clock.monotonic()))
                found[step.name] = set_up(step, now)
            return found

        made = await all_of(
            [
                *([self._own(uid, make, took)] if own else []),
                *(self._mounted(pod, step) for step in plugged),
            ]
        )
        volumes = {**known, **{name: found for part in made for name, found in part.items()}}
        self._ready[uid] = _Ready(volumes, made_from)
        return volumes

    async def _own(
        self,
        uid: str,
        make: Callable[[], dict[str, MountedVolume]],
        begun: Sequence[tuple[OwnStep, float]],
    ) -> dict[str, MountedVolume]:
        """Those that the node sets up by itself, one after the other."""
        try:
            found = await self._alone(uid, make)
        except (VolumeFailure, OSError):
            self._count(begun, is_done=False)
            raise
        self._count(begun, is_done=True)
        return found

    def _count(self, begun: Sequence[tuple[OwnStep, float]], *, is_done: bool) -> None:
        """`is_done`: the last one, too."""
        end = self._clock.monotonic()
        for at, (step, began) in reversed([*enumerate(begun)]):
            is_set_up = is_done or at < len(begun) - 1
            self._operations.observe(plugin_of(step), MOUNT, end - began, is_done=is_set_up)
            end = began

    async def _mounted(self, pod: Obj, step: Plugged) -> dict[str, MountedVolume]:
        if self._csi is None:
            why = "kubernetes.io/csi: failed to get a kubernetes client"
            raise VolumeFailure(
                f'MountVolume.NewMounter initialization failed for volume "{step.name}" : {why}'
            )
        return {step.name: await self._csi.mount(pod, step.volume)}

    async def resolve(self, pod: Obj, container: str, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        if not any(mount.sub_path for mount in mounts):
            return tuple(mounts)
        return await self._alone(uid_of(pod), partial(self._bind_all, pod, container, mounts))

    async def read(self, volume: MountedVolume, path: str) -> str | None:
        try:
            found = await asyncio.to_thread(read_beneath, volume.host_path, path, ENV_FILE_BYTES)
        except (OSError, SubPathFailure) as error:
            log.info("file of a volume cannot be read", path=path, error=error)
            return None
        return found.decode(errors="surrogateescape")

    async def refresh(self, pod: Obj) -> None:
        if not volumes_of(pod):
            return
        uid = uid_of(pod)
        try:
            await self._made(pod, await self.objects(pod))
            if self._csi is not None:
                await self._csi.refresh(pod)
        except VolumeFailure:
            # What it had, it keeps; a change of the objects brings us back at once.
            ready = self._ready.get(uid)
            if ready is not None:
                retry_at = self._clock.now() + RETRY_SECONDS
                self._ready[uid] = replace(ready, retry_at=retry_at)
            raise

    def next_refresh(self, uid: str) -> float | None:
        ready = self._ready.get(uid)
        moments = [ready.retry_at if ready is not None else None, self._tokens.next_due(uid)]
        moments.append(self._certificates.next_due(uid))
        if self._csi is not None:
            moments.append(self._csi.next_refresh(uid))
        return min((moment for moment in moments if moment is not None), default=None)

    async def clean_up(self, uid: str) -> None:
        self._ready.pop(uid, None)
        self._tokens.forget(uid)
        self._certificates.forget(uid)
        self._objects.release(uid)
        await self._tear_down(uid, whole=False)

    async def _tear_down(self, uid: str, *, whole: bool) -> None:
        """Raises VolumeFailure."""
        try:
            if self._csi is not None and self._csi.has(uid):
                await self._alone(uid, partial(release_sub_paths, self._directory(uid)))
                await self._csi.unmount_pod(uid)
            await self._alone(uid, partial(tear_down, self._directory(uid), whole=whole))
        except OSError as error:
            raise VolumeFailure(f"cannot remove the volumes of pod {uid}: {error}") from error

    async def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        """What needs a driver that is not here yet is tried again."""
        uids = await asyncio.to_thread(_names_in, self._node.pods_dir)
        if self._csi is None:
            for uid in [uid for uid in uids if not is_known(uid)]:
                await self._remove(uid)
            return
        self._csi.sweep()
        while uids := [uid for uid in uids if not is_known(uid) and not await self._remove(uid)]:
            await self._csi.driver_or(ORPHAN_RETRY_SECONDS)

    async def _remove(self, uid: str) -> bool:
        try:
            await self._tear_down(uid, whole=True)
        except VolumeFailure as error:
            log.warning("cannot remove what is left of a pod", uid=uid, error=error)
            return self._csi is None or not self._csi.has(uid)
        log.info("removed what was left of a pod", uid=uid)
        return True

    def _is_due(self, uid: str) -> bool:
        moment = self.next_refresh(uid)
        return moment is not None and self._clock.now() >= moment

    def _directory(self, uid: str) -> str:
        return f"{self._node.pods_dir}/{uid}"

    async def _claim(self, pod: Obj, name: str) -> Obj | None:
        """Asked for, not watched: a node may read claims, but not list them. Once bound and
        mounted, a claim stays what it is."""
        try:
            return await self._client.get(PERSISTENT_VOLUME_CLAIMS, namespace_of(pod), name)
        except NotFound:
            return None
        except ApiError as error:
            raise VolumeFailure(
                f"error processing PVC {namespace_of(pod)}/{name}: failed to fetch PVC from API "
                f"server: {error}"
            ) from error

    async def _bound(self, pod: Obj, objects: Objects) -> dict[str, Obj]:
        bound = {}
        for volume, claim in claims_of(pod):
            name = bound_volume_name(pod, volume, claim, objects)
            try:
                bound[volume] = await self._client.get(PERSISTENT_VOLUMES, "", name)
            except ApiError as error:
                raise VolumeFailure(
                    f"Unable to attach or mount volumes: unmounted volumes=[{volume}], "
                    f"unattached volumes=[], failed to process volumes=[{volume}]: failed to fetch "
                    f'PV "{name}" from API server: {error}'
                ) from error
        return bound

    async def _token_of(self, pod: Obj) -> Callable[[Obj], str]:
        found: dict[Wanted, str] = {}
        for volume in volumes_of(pod):
            for source in (volume.get("projected") or {}).get("sources") or ():
                if part := source.get("serviceAccountToken"):
                    if len(found) % TOKENS_PER_TURN == TOKENS_PER_TURN - 1:
                        await give_way()
                    try:
                        found[wanted_of(part)] = await self._tokens.get(pod, part)
                    except VolumeFailure as error:
                        raise VolumeFailure(
                            f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                        ) from error
        return lambda projection: found[wanted_of(projection)]

    def _bind_all(self, pod: Obj, container: str, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        base = f"{self._directory(uid_of(pod))}/volume-subpaths"
        bound = []
        for index, mount in enumerate(mounts):
            if mount.sub_path:
                target = f"{base}/{mount.volume}/{container}/{index}"
                try:
                    bind_sub_path(mount.host_path, mount.sub_path, target)
                except (OSError, SubPathFailure) as error:
                    # As upstream: what the node's files look like is none of the pod's business.
                    log.warning(
                        "subPath refused", pod=key_of(pod), path=mount.sub_path, error=error
                    )
                    is_there = os.path.exists(f"{mount.host_path}/{mount.sub_path}")
                    what = "prepare subPath" if is_there else "create subPath directory"
                    raise SubPathFailure(
                        f'failed to {what} for volumeMount "{mount.volume}" of container '
                        f'"{container}"'
                    ) from error
                mount = replace(mount, host_path=target, sub_path="")
            bound.append(mount)
        return tuple(bound)

    async def _alone(self, uid: str, work: Callable[[], T]) -> T:
        """In a thread, after whatever still runs for this pod; not interrupted by cancellation."""
        while (running := self._running.get(uid)) is not None:
            await asyncio.wait([running])
        future = asyncio.get_running_loop().run_in_executor(None, work)
        self._running[uid] = future
        future.add_done_callback(partial(self._ended, uid))
        return await asyncio.shield(future)

    def _ended(self, uid: str, future: "asyncio.Future[Any]") -> None:
        if self._running.get(uid) is future:
            del self._running[uid]
        if not future.cancelled():
            future.exception()  # whoever waited may be gone; nobody is to complain about that


def _made_from(pod: Obj, objects: Objects) -> object:
    """Equal as long as nothing that a volume shows has changed."""
    seen = []
    for reference in volume_references(pod):
        found = objects.get((reference.kind, reference.name))
        seen.append(None if found is None else meta_of(found).get("resourceVersion"))
    downward = any(kind_of(item) in ("downwardAPI", "projected") for item in volumes_of(pod))
    return seen, _shown_of(pod) if downward else None


def _shown_of(pod: Obj) -> object:
    """Of the pod itself: what may change, and what a downward API shows."""
    resources = [container.get("resources") for _, container in with_roles(pod)]
    return labels_of(pod), annotations_of(pod), resources


def _renewable(pod: Obj) -> Obj:
    """Without the volumes that stay what they are once they are mounted."""
    lasting = ("persistentVolumeClaim", "ephemeral", "csi", *IN_TREE)
    volumes = [volume for volume in volumes_of(pod) if kind_of(volume) not in lasting]
    return {**pod, "spec": {**spec_of(pod), "volumes": volumes}}


def _names_in(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []

"""The local provisioner's side on a node: the directories behind its persistent volumes.

Job: say where they are, make one for each volume on this node, remove it when its volume goes.
Invariant: nothing is ever made or removed but `<root>/<name of the volume>`; no link is followed
    out of it, and a volume that is to be retained keeps its directory.
Owner: cmd/ starts one for each real node.
"""

import asyncio
import os
from functools import partial
from typing import Literal

from sampan.api.errors import ApiError
from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    meta_of,
    name_of,
    revision_of,
    uid_of,
)
from sampan.api.resources import NODES, PERSISTENT_VOLUMES
from sampan.api.rules.storage import LOCAL_FINALIZER, LOCAL_PROVISIONER, LOCAL_ROOT, PROVISIONED_BY
from sampan.client.contract import Client
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.files.remove_tree import remove_tree
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)

RETRY = Backoff(first_seconds=0.1, cap_seconds=30.0)
_MODE = 0o777  # whoever the pod runs as may write; the directories above are the node's own

Step = Literal["make", "remove", "let go"]


def step_for(volume: Obj, root: str) -> Step | None:
    """What this node has to do about a volume; nothing where it is not one of its own. Only this
    node's volumes lie below its root: nodes of one machine have a data directory each."""
    path = ((volume.get("spec") or {}).get("local") or {}).get("path")
    if annotations_of(volume).get(PROVISIONED_BY) != LOCAL_PROVISIONER:
        return None
    name = name_of(volume)
    if path != f"{root}/{name}" or not name or "/" in name or name in (".", ".."):
        return None
    if LOCAL_FINALIZER not in (meta_of(volume).get("finalizers") or ()):
        return None
    if not is_deleted(volume):
        return "make"
    if (volume.get("status") or {}).get("phase") == "Bound":
        return None  # still in use: pv-protection keeps it
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    return "remove" if policy == "Delete" else "let go"


class LocalVolumes:
    def __init__(
        self, *, client: Client, node_client: Client, node_name: str, root: str, clock: Clock
    ) -> None:
        """`client` may write volumes, `node_client` the node."""
        self._client, self._node_client = client, node_client
        self._node_name, self._root, self._clock = node_name, root, clock

    async def run(self) -> None:
        """Until cancelled."""
        await asyncio.to_thread(os.makedirs, self._root, 0o711, True)
        queue: WorkQueue[str] = WorkQueue(RETRY)
        informer = Informer(self._client, Selection(PERSISTENT_VOLUMES), clock=self._clock)

        def heard(_old: Obj | None, new: Obj | None) -> None:
            if new is not None:
                queue.add(name_of(new))

        informer.on_change(heard)
        tasks = Tasks("local volumes")
        tasks.supervise("volumes", informer.run)
        own = Selection(NODES, field_selector=f"metadata.name={self._node_name}")
        node = Informer(self._node_client, own, clock=self._clock)
        unsaid = asyncio.Event()

        def seen(_old: Obj | None, new: Obj | None) -> None:
            if new is not None and annotations_of(new).get(LOCAL_ROOT) != self._root:
                unsaid.set()

        node.on_change(seen)
        tasks.supervise("node", node.run)
        tasks.supervise("where", lambda: self._keep_saying_where(informer, unsaid))
        try:
            while True:
                name = await queue.get()
                try:
                    volume = informer.cache.get(name)
                    if volume is not None:
                        await self._done(volume)
                    queue.forget(name)
                except (ApiError, OSError) as error:
                    seconds = queue.retry(name)
                    log.warning("local volume sync failed", volume=name, error=error, again=seconds)
                finally:
                    queue.done(name)
        finally:
            await tasks.stop()

    async def _keep_saying_where(self, volumes: Informer, unsaid: asyncio.Event) -> None:
        """Again, where somebody deleted the Node and it registered anew. Nothing is promised on an
        API that does not show this node its volumes."""
        await volumes.synced()
        while True:
            await unsaid.wait()
            unsaid.clear()
            await self._say_where()

    async def _say_where(self) -> None:
        """Where it is, provisioners learn from the node. The node registers itself first."""
        attempt = 0
        patch = {"metadata": {"annotations": {LOCAL_ROOT: self._root}}}
        while True:
            try:
                await self._node_client.patch(NODES, "", self._node_name, patch, patch_type="merge")
                return
            except ApiError as error:
                log.info("node annotation not written yet", node=self._node_name, error=error)
                await self._clock.sleep(RETRY.delay(attempt))
                attempt += 1

    async def _done(self, volume: Obj) -> None:
        step = step_for(volume, self._root)
        path = f"{self._root}/{name_of(volume)}"
        match step:
            case "make":
                await asyncio.to_thread(_make, path)
            case "remove":
                await asyncio.to_thread(_remove, path)
                await self._let_go(volume)
            case "let go":
                await self._let_go(volume)
            case None:
                pass

    async def _let_go(self, volume: Obj) -> None:
        finalizers = meta_of(volume).get("finalizers") or []
        left = [finalizer for finalizer in finalizers if finalizer != LOCAL_FINALIZER]
        meta = {
            "uid": uid_of(volume),
            "resourceVersion": str(revision_of(volume)),
            "finalizers": left or None,
        }
        call = partial(self._client.patch, PERSISTENT_VOLUMES, "", name_of(volume))
        await call({"metadata": meta}, patch_type="merge")


def _make(path: str) -> None:
    if not os.path.isdir(path):
        os.mkdir(path)
        os.chmod(path, _MODE)


def _remove(path: str) -> None:
    """No link is followed, not even where `path` itself has become one."""
    if os.path.lexists(path):
        remove_tree(path)

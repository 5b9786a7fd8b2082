"""Node registration, status and lease.

Job: keep the Node object and its lease in the API true, for as long as the agent lives.
Invariant: a status is written at once when it changed, else every `status_report_seconds`.
Invariant: the Node is the newest that the API has shown, whoever changed it.
Invariant: an API that does not answer is asked again for as long as it takes.
Owner: Kubelet runs it; `poke` may be called from anywhere in the same event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.objects import Obj, copy_of, micro_time_text, revision_of, uid_of
from sampan.api.resources import LEASES, NODES
from sampan.client.events import EventRecorder
from sampan.core.backoff import Backoff, with_jitter
from sampan.core.flag import Flag
from sampan.core.log import get_logger
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import Image, RuntimeFailure
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.node.node_status import (
    NodeKnowledge,
    differs,
    is_ready,
    node_object,
    node_status,
    reconciled_metadata,
)
from sampan.kubelet.node.shared_leases import Leases
from sampan.kubelet.node_plugins import Plugins
from sampan.kubelet.pods import fit
from sampan.kubelet.resource_managers.manager_settings import pinned_resources
from sampan.kubelet.runtime.pleg import RuntimeHealth

log = get_logger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
_MAPS = ("capacity", "allocatable", "nodeInfo")
RETRY = Backoff(first_seconds=0.1, cap_seconds=5.0)
FIRST_WORD_SECONDS = 1.0
# What others write into the status is answered at once, but no faster than this: two agents of one
# name would otherwise contradict each other as fast as they can.
PACE_SECONDS = 1.0


class NodeStatusManager:
    def __init__(
        self,
        context: NodeContext,
        *,
        machine: Machine,
        health: RuntimeHealth,
        recorder: EventRecorder,
        leases: Leases | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        """`leases`: where the nodes of one process renew theirs together."""
        self._plugins, self._pinned = plugins, pinned_resources(context.settings.managers)
        self._leases = leases
        self._pressures: frozenset[str] = frozenset()
        self._shutting_down = False
        self._settings, self._client = context.settings, context.client
        self._runtime, self._clock, self._rng = context.runtime, context.clock, context.rng
        self._machine, self._health, self._recorder = machine, health, recorder
        self._told_of_reboot = False
        self._poked = Flag()
        self._images: list[Image] = []
        keeper = context.keeper
        self._node: Obj = keeper.node if keeper else node_object(self._knowledge())
        self._runs = False
        self._answered_at = -PACE_SECONDS  # when the status last followed what others wrote
        self._lease: Obj | None = None
        self._known = False  # the node was in the API before this agent came
        self._tells_images_later = False
        self.registered = Flag()  # the node is in the API
        self.node_ready = Flag()
        if keeper:
            self.registered.set()
            self.node_ready.set()

    def leave_keeper(self) -> None:
        """From now on it is this one that registers the node, and keeps its status and lease."""
        self.registered.clear()
        self.node_ready.clear()

    def poke(self) -> None:
        """Something that the status tells may have changed."""
        self._poked.set()

    def node(self) -> Obj:
        """The node as the API last showed it (before registration: as we would write it)."""
        return self._node

    def registration(self) -> Obj:
        return node_object(self._knowledge())

    def seen(self, node: Obj) -> None:
        """The API shows the node like this now."""
        if not self.registered.is_set() or not _is_newer(node, self._node):
            return
        self._node = node
        if not self._runs:
            return  # its keeper answers, or leaves
        loop = asyncio.get_running_loop()
        due = max(self._answered_at + PACE_SECONDS, loop.time())
        self._answered_at = due
        loop.call_at(due, self.poke)

    async def refetch(self, then: Callable[[], None]) -> None:
        """Read the node, then go on, with what is known where the API does not answer."""
        try:
            node = await self._client.get(NODES, "", self._settings.node_name)
        except ApiError as error:
            log.info("node was not read", node=self._settings.node_name, error=error)
        else:
            self.seen(node)
        then()

    def room(self) -> fit.NodeRoom:
        prepares = self._settings.simulated or self._plugins is not None
        room = fit.room_of(self._node, self._pressures, prepares_devices=prepares)
        return replace(
            room,
            shutting_down=self._shutting_down,
            unsafe_sysctls=self._settings.allowed_unsafe_sysctls,
            pinned=self._pinned,
            apparmor=self._settings.apparmor,
        )

    async def run(self) -> None:
        """Register, then keep the status true, until cancelled."""
        self._runs = True
        # The runtime answers within milliseconds, or is not there: a node that is Ready should not
        # say NotReady first, neither a new one nor one whose agent was restarted.
        await self._poked_within(FIRST_WORD_SECONDS)
        await self._patiently("node was not registered, trying again", self._register)
        self.registered.set()
        due_at = self._clock.monotonic() + self._settings.status_report_seconds
        if self._known and self._health.ready and await self._goes_on():
            due = not await self._poked_within(due_at - self._clock.monotonic())
        else:
            due = not self.node_ready.is_set()
        while True:
            self._poked.clear()
            status = node_status(self._knowledge(), self._node.get("status") or {})
            if due or differs(self._node.get("status") or {}, status):
                await self._patiently("node status was not written, trying again", self._report)
                due_at = self._clock.monotonic() + self._settings.status_report_seconds
            due = not await self._poked_within(due_at - self._clock.monotonic())

    async def _goes_on(self) -> bool:
        """The agent was away, and the node is as its status says: that need not be written again.
        Its lease says that somebody is here. What image the first pod of one of many nodes has
        brought can wait."""
        self._poked.clear()
        await self._list_images()
        shown = self._node.get("status") or {}
        now = node_status(self._knowledge(), shown)
        if self._leases is not None:
            self._tells_images_later = True
            now["images"] = shown.get("images")
        if not is_ready(shown) or differs(shown, now):
            return False
        self.node_ready.set()
        return True

    async def keep_lease(self) -> None:
        """Renew the node's lease, until cancelled."""
        await self.registered.wait()
        if self._known and self._leases is not None:
            # It has one already, which is renewed with those of others that were away.
            await self._leases.due(self._settings.node_name, soon=True)
        while True:
            await self._patiently("node lease was not renewed, trying again", self._renew)
            if self._leases is not None:
                await self._leases.due(self._settings.node_name)
                continue
            # The jitter keeps a thousand nodes of one process from writing as one.
            await self._clock.sleep(with_jitter(self._settings.heartbeat_seconds, 0.04, self._rng))

    async def watch_images(self) -> None:
        """Images come and go seldom: look now and then."""
        await self.node_ready.wait()
        if self._tells_images_later:
            await self._clock.sleep(self._settings.status_report_seconds / 5)
            self.poke()
        while True:
            if self._health.ready and await self._list_images():
                self.poke()
            await self._clock.sleep(self._settings.status_report_seconds / 5)

    async def _list_images(self) -> bool:
        """Whether there are others than before."""
        before = self._images
        try:
            self._images = list(await self._runtime.images())
        except RuntimeFailure as error:
            log.debug("images were not listed", error=error)
        return self._images != before

    def _knowledge(self) -> NodeKnowledge:
        return NodeKnowledge(
            self._settings, self._machine, self._health, self._images, self._clock.now(),
            self._pressures, self._shutting_down,
            self._plugins.csi.in_use() if self._plugins is not None else (),
            self._plugins.devices.offered() if self._plugins is not None else {},
        )  # fmt: skip

    async def _patiently(self, sentence: str, attempt: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            try:
                await attempt()
                return
            except ApiError as error:
                failures += 1
                if failures in (1, 20):
                    log.warning(sentence, node=self._settings.node_name, error=error)
                pause = with_jitter(RETRY.delay(failures), 0.5, self._rng)
                await self._clock.sleep(max(pause, float(error.retry_after_seconds or 0)))

    async def _register(self) -> None:
        wanted = self.registration()
        if not self._settings.register_node:
            self._take(await self._client.get(NODES, "", self._settings.node_name))
            return
        try:
            if self._leases is not None:
                # One of many, that may all be there: a create that fails costs more than a look.
                await self._join(wanted)
            else:
                await self._create(wanted)
        except NotFound:
            await self._create(wanted)
        except AlreadyExists:
            await self._join(wanted)
        if self._settings.routine_events:
            self._event("Normal", "Starting", "Starting kubelet.")

    async def _create(self, wanted: Obj) -> None:
        self._take(await self._client.create(NODES, wanted))
        log.info("node registered", node=self._settings.node_name)

    async def _join(self, wanted: Obj) -> None:
        """The node is there already: labels and annotations become what we would have written."""
        existing = await self._client.get(NODES, "", self._settings.node_name)
        patch = reconciled_metadata(existing, wanted)
        if patch is not None:
            existing = await self._client.patch(
                NODES, "", self._settings.node_name, patch, patch_type="merge"
            )
        self._take(existing, stale=True)
        self._known = True

    async def _report(self) -> None:
        """Write the status as it is now; a node that somebody deleted registers again."""
        status = node_status(self._knowledge(), self._node.get("status") or {})
        self._tell_of_reboot(status["nodeInfo"]["bootID"])
        try:
            answer = await self._client.patch(
                NODES,
                "",
                self._settings.node_name,
                {"status": _replacing(status, self._node.get("status") or {})},
                subresource="status",
            )
        except NotFound:
            await self._register()
            return
        before = is_ready(self._node.get("status") or {})
        self._take(answer)
        if before != is_ready(status):
            word = "NodeReady" if is_ready(status) else "NodeNotReady"
            name = self._settings.node_name
            self._event("Normal", word, f"Node {name} status is now: {word}")

    def _tell_of_reboot(self, boot_id: str) -> None:
        """Once: the machine has begun anew since somebody wrote down which boot it was."""
        info = (self._node.get("status") or {}).get("nodeInfo") or {}
        if info.get("bootID") and info["bootID"] != boot_id and not self._told_of_reboot:
            self._told_of_reboot = True
            name = self._settings.node_name
            self.warn("Rebooted", f"Node {name} has been rebooted, boot id: {boot_id}")

    def _take(self, node: Obj, *, stale: bool = False) -> None:
        if _is_newer(node, self._node):
            self._node = node
        if is_ready(node.get("status") or {}) and not stale:
            self.node_ready.set()
        elif not stale:
            self.node_ready.clear()

    async def _poked_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._poked.wait()
        except TimeoutError:
            return False
        return True

    async def _renew(self) -> None:
        spec = {
            "holderIdentity": self._settings.node_name,
            "leaseDurationSeconds": self._settings.lease_seconds,
            "renewTime": micro_time_text(self._clock.now()),
        }
        name = self._settings.node_name
        if self._lease is not None:
            try:
                patch = {"spec": spec}
                self._lease = await self._client.patch(
                    LEASES, LEASE_NAMESPACE, name, patch, patch_type="merge"
                )
                return
            except NotFound:
                self._lease = None
        try:
            self._lease = await self._client.create(LEASES, self._new_lease(spec), LEASE_NAMESPACE)
        except AlreadyExists:
            self._lease = await self._client.get(LEASES, LEASE_NAMESPACE, name)
            await self._renew()

    def _new_lease(self, spec: Obj) -> Obj:
        name = self._settings.node_name
        metadata: Obj = {"name": name, "namespace": LEASE_NAMESPACE}
        if uid_of(self._node):
            metadata["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(self._node)}
            ]
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": spec,
        }

    def press(self, conditions: frozenset[str]) -> None:
        """What the node is short of, by the names of its conditions."""
        self._pressures = conditions
        self.poke()

    def shut_down(self) -> None:
        """The machine goes down: the node is not ready and takes no more pods, from now on."""
        self._shutting_down = True
        self.poke()

    def warn(self, reason: str, message: str) -> None:
        """An event about the node itself."""
        self._event("Warning", reason, message)

    def _event(self, kind: str, reason: str, message: str) -> None:
        name = self._settings.node_name
        # As upstream: the uid of a node's events is its name.
        about = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name}
        self._recorder.record(about, kind, reason, message)


def _is_newer(node: Obj, known: Obj) -> bool:
    """Revisions of another Node, or of a store that was begun anew, say nothing."""
    return uid_of(node) != uid_of(known) or revision_of(node) > revision_of(known)


def _replacing(status: Obj, known: Obj) -> Obj:
    """A strategic patch: keyed lists whose members may go are replaced whole, and what has left a
    map is named."""
    patch: Obj = copy_of(status)
    if known.get("addresses") not in (None, status["addresses"]):
        patch["addresses"] = [{"$patch": "replace"}, *patch["addresses"]]
    for name in _MAPS:
        gone = (known.get(name) or {}).keys() - status[name].keys()
        patch[name] |= dict.fromkeys(gone)
    return {key: value for key, value in patch.items() if known.get(key) != status[key]}

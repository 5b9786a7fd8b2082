"""Which CSI volume is to be attached where: the attach-detach controller's decisions.

Job: all that is known of one volume → VolumeAttachments to make and to delete, what nodes' statuses
    list, what pods are told.
Invariant: a volume of one node is attached to one node at a time: as long as another attachment is
    there, none is made.
Invariant: a volume that a node says it uses is not detached, unless the node is out of service, or
    not ready for six minutes.
Invariant: a volume leaves a node's status before its attachment is deleted.
"""

from collections.abc import Mapping, Sequence

from sampan.api.errors import AlreadyExists
from sampan.api.objects import (
    Obj,
    is_deleted,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    spec_of,
)
from sampan.api.resources import NODES, VOLUME_ATTACHMENTS
from sampan.api.rules import nodes as node_facts
from sampan.api.rules.storage import attachment_name, unique_volume_name
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import (
    Action,
    Create,
    Outcome,
    Plan,
    Record,
    deletion,
    status_patch,
)
from sampan.controllers.nodes.pod_gc import OUT_OF_SERVICE
from sampan.controllers.storage.attach_memory import AttachMemory
from sampan.core.fast_dataclass import dataclass

# As upstream: for so long a node that is not ready may say that it uses a volume …
UNMOUNT_SECONDS = 360.0
# … and a driver's attacher may be silent.
ATTACH_SECONDS = 120.0
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})

Listed = tuple[str, str]  # a volume's unique name, and its attachment's


@dataclass(frozen=True, slots=True)
class Volume:
    """A driver's volume."""

    driver: str
    handle: str

    @property
    def unique_name(self) -> str:
        return unique_volume_name(self.driver, self.handle)


@dataclass(frozen=True, slots=True)
class VolumeState:
    """All that is known of a volume when its turn comes."""

    key: Volume
    volume: Obj  # the PersistentVolume, or a pod's own disk as one
    pods: Mapping[str, Sequence[Obj]]  # those that need it, by the nodes that they are on
    attachments: Mapping[str, Obj]  # by node
    nodes: Mapping[str, Obj]  # of either
    attached: Mapping[str, Sequence[Listed]]  # of each node everything that is attached to it
    now: float
    is_inline: bool = False  # there is no such PersistentVolume

    @property
    def is_shared(self) -> bool:
        modes = spec_of(self.volume).get("accessModes") or ()
        return not modes or bool(_SHARED & set(modes))


def plan(state: VolumeState, memory: AttachMemory) -> Plan:
    """Detach before attach: what has to move is let go first."""
    gone: list[Obj] = []
    waits: list[float] = []
    for node, attachment in state.attachments.items():
        if node in state.pods or is_deleted(attachment):
            continue
        left = _seconds_left(state, node, memory.asked(name_of(attachment), state.now))
        if left > 0:
            waits.append(left)
        else:
            memory.detaches(name_of(attachment))
            gone.append(attachment)
    attaching: list[Action] = []
    for node in state.pods:
        attaching += _attach(state, node, memory, waits)

    def then(outcomes: Sequence[Outcome]) -> Sequence[Action]:
        """Once no node's status lists them any more."""
        if any(outcome.error is not None for outcome in outcomes):
            return ()
        return [deletion(VOLUME_ATTACHMENTS, item, propagation=None) for item in gone]

    actions = [*_listings(state, memory), *attaching]
    return Plan(actions, then if gone else None, again_seconds=min(waits, default=None))


def _seconds_left(state: VolumeState, node_name: str, since: float) -> float:
    """Until the volume may be detached there."""
    node = state.nodes.get(node_name)
    if node is not None:
        if state.key.unique_name not in ((node.get("status") or {}).get("volumesInUse") or ()):
            return 0.0
        if any(taint.get("key") == OUT_OF_SERVICE for taint in node_facts.taints_of(node)):
            return 0.0
        if node_facts.is_ready(node):
            return UNMOUNT_SECONDS  # however long: it says when it has unmounted it
    return max(since + UNMOUNT_SECONDS - state.now, 0.0)


def _attach(
    state: VolumeState, node: str, memory: AttachMemory, waits: list[float]
) -> Sequence[Action]:
    attachment = state.attachments.get(node)
    if attachment is not None:
        memory.wanted(name_of(attachment))
        return _told_of(state, node, attachment, memory, waits)
    if state.attachments and not state.is_shared:
        if memory.is_news(("multi-attach", state.key.unique_name, node), state.now):
            return _multi_attach(state, node)
        return ()
    waits.append(ATTACH_SECONDS)
    made = {
        "apiVersion": VOLUME_ATTACHMENTS.api_version,
        "kind": VOLUME_ATTACHMENTS.kind,
        "metadata": {"name": attachment_name(state.key.handle, state.key.driver, node)},
        "spec": {
            "attacher": state.key.driver,
            "nodeName": node,
            "source": _source(state),
        },
    }
    return [Create(VOLUME_ATTACHMENTS, made, settled=(AlreadyExists,))]


def _source(state: VolumeState) -> Obj:
    if state.is_inline:
        return {"inlineVolumeSpec": spec_of(state.volume)}
    return {"persistentVolumeName": name_of(state.volume)}


def _told_of(
    state: VolumeState, node_name: str, attachment: Obj, memory: AttachMemory, waits: list[float]
) -> Sequence[Action]:
    """What its pods hear of an attachment that is there."""
    if is_deleted(attachment):
        return ()  # it is made anew when it has gone
    status, name = attachment.get("status") or {}, name_of(state.volume)
    if status.get("attached"):
        if _lists(state.nodes[node_name], state.key.unique_name):
            return ()
        text = f'AttachVolume.Attach succeeded for volume "{name}" '
        return _events(state, node_name, "Normal", "SuccessfulAttachVolume", text)
    error = status.get("attachError") or {}
    why = str(error.get("message") or "")
    if not why:
        left = seconds_of(meta_of(attachment)["creationTimestamp"]) + ATTACH_SECONDS - state.now
        waits.append(left if left > 0 else ATTACH_SECONDS)
        if left > 0:
            return ()
        why = (
            f"timed out waiting for external-attacher of {state.key.driver} CSI driver to attach "
            f"volume {state.key.handle}"
        )
    if not memory.is_news((name_of(attachment), error.get("time"), why), state.now):
        return ()
    text = f'AttachVolume.Attach failed for volume "{name}" : {why}'
    return _events(state, node_name, "Warning", "FailedAttachVolume", text)


def _events(
    state: VolumeState, node_name: str, kind: str, reason: str, text: str
) -> Sequence[Action]:
    return [Record(reference_to(pod), kind, reason, text) for pod in state.pods[node_name]]


def _multi_attach(state: VolumeState, node_name: str) -> Sequence[Action]:
    """Each pod hears of the users in its own namespace, and how many others there are."""
    users = [
        pod
        for other, pods in state.pods.items()
        if other != node_name and other in state.attachments
        for pod in pods
    ]
    name = name_of(state.volume)
    return [
        Record(
            reference_to(pod), "Warning", "FailedAttachVolume",
            f'Multi-Attach error for volume "{name}" {_why_not(pod, users)}',
        )
        for pod in state.pods[node_name]
    ]  # fmt: skip


def _why_not(pod: Obj, users: Sequence[Obj]) -> str:
    own = [name_of(user) for user in users if namespace_of(user) == namespace_of(pod)]
    others = len(users) - len(own)
    if not users:
        return "Volume is already exclusively attached to one node and can't be attached to another"
    if not own:
        return f"Volume is already used by {others} pod(s) in different namespaces"
    more = f" and {others} pod(s) in different namespaces" if others else ""
    return f"Volume is already used by pod(s) {', '.join(own)}{more}"


def _lists(node: Obj, unique_name: str) -> bool:
    listed = (node.get("status") or {}).get("volumesAttached") or ()
    return any(item.get("name") == unique_name for item in listed)


def _listings(state: VolumeState, memory: AttachMemory) -> list[Action]:
    """What the nodes' statuses have to list by now, of all volumes: one write for many."""
    patches = []
    for name, node in state.nodes.items():
        wanted = [
            {"name": unique, "devicePath": ""}
            for unique, attachment in sorted(state.attached.get(name, ()))
            if not memory.is_detaching(attachment)
        ]
        status = dict(node.get("status") or {})
        status.pop("volumesAttached", None)
        if wanted:
            status["volumesAttached"] = wanted
        patches.append(status_patch(NODES, node, status))
    return [patch for patch in patches if patch is not None]

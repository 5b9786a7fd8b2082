"""The attach-detach controller: which CSI volumes are attached to which nodes.

Job: find out whom a change concerns, gather what is known of a volume, and have it decided. Disks
    of in-tree plugins are CSI volumes, those that pods name in their own spec among them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.resources import (
    CSI_DRIVERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from sampan.api.rules import nodes as node_facts
from sampan.api.rules import pods as pod_facts
from sampan.api.rules.aspects import DELETION, EXISTENCE, NODE, PHASE, SPEC, looks_at
from sampan.api.rules.storage import unique_volume_name
from sampan.api.rules.volumes.in_tree_volumes import (
    NotTranslated,
    source_of,
    translated_inline,
    translated_volume,
)
from sampan.controllers.actions import NOTHING, Plan
from sampan.controllers.controller import Caches, Controller, View
from sampan.controllers.storage.attach_memory import AttachMemory
from sampan.controllers.storage.attach_rules import Listed, Volume, VolumeState, plan
from sampan.controllers.storage.volume_protection import claim_keys

MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"


def attach_detach_controller() -> Controller:
    memory = AttachMemory()

    async def planned(view: View, key: Volume) -> Plan:
        state = _state(view.cache, key, view.now)
        return NOTHING if state is None else plan(state, memory)

    def attachment_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Volume]:
        if new is None and old is not None:
            memory.gone(name_of(old))
        return _of_attachment(caches, new if new is not None else old)

    return Controller(
        name="persistentvolume-attach-detach-controller",
        component="attachdetach-controller",
        aliases=("attachdetach",),
        wakes={
            PODS: _pod_changed,
            PERSISTENT_VOLUME_CLAIMS: _claim_changed,
            PERSISTENT_VOLUMES: _volume_changed,
            VOLUME_ATTACHMENTS: attachment_changed,
            NODES: _node_changed,
            CSI_DRIVERS: _driver_changed,
        },
        planned=planned,
        indices={
            PODS: {"claims": claim_keys, "disks": _disks},
            PERSISTENT_VOLUMES: {"handle": _handle, "driver": _driver},
            VOLUME_ATTACHMENTS: {"node": _node, "volume": _volume_name, "inline": _inline_name},
        },
        workers=1,
    )


def _state(caches: Caches, key: Volume, now: float) -> VolumeState | None:
    """None: nothing is to be attached of it."""
    volumes = caches(PERSISTENT_VOLUMES).by("handle", key.unique_name)
    volume = translated_volume(volumes[0]) if volumes else _inline_volume(caches, key)
    if volume is None or not _attaches(caches, key.driver):
        return None
    pods: dict[str, list[Obj]] = defaultdict(list)
    attachments: dict[str, Obj] = {}
    found = list(caches(VOLUME_ATTACHMENTS).by("inline", key.unique_name))
    users = _placed(caches(PODS).by("disks", key.unique_name))
    for each in volumes:
        users += _users(caches, each)
        found += caches(VOLUME_ATTACHMENTS).by("volume", name_of(each))
    for pod in users:
        node = caches(NODES).get(pod_facts.node_name(pod))
        if node is not None and MANAGED in annotations_of(node):
            pods[name_of(node)].append(pod)
    for attachment in found:
        attachments[spec_of(attachment).get("nodeName", "")] = attachment
    nodes = {
        name: node
        for name in sorted({*pods, *attachments})
        if (node := caches(NODES).get(name)) is not None
    }
    attached = {name: list(_attached_to(caches, name)) for name in nodes}
    is_inline = not volumes
    return VolumeState(key, volume, pods, attachments, nodes, attached, now, is_inline)


def _inline_volume(caches: Caches, key: Volume) -> Obj | None:
    """As a PersistentVolume, of the pods that name it, or of what is still attached."""
    for pod in caches(PODS).by("disks", key.unique_name):
        for name, volume in _inline_volumes(pod):
            if name == key.unique_name:
                return volume
    for attachment in caches(VOLUME_ATTACHMENTS).by("inline", key.unique_name):
        return {"metadata": {}, "spec": spec_of(attachment)["source"]["inlineVolumeSpec"]}
    return None


def _attaches(caches: Caches, driver: str) -> bool:
    found = caches(CSI_DRIVERS).get(driver)
    return found is None or spec_of(found).get("attachRequired") is not False


def _users(caches: Caches, volume: Obj) -> Iterator[Obj]:
    """The pods that need it where they are."""
    reference = spec_of(volume).get("claimRef") or {}
    key = f"{reference.get('namespace')}/{reference.get('name')}"
    claim = caches(PERSISTENT_VOLUME_CLAIMS).get(key)
    if (
        claim is None
        or uid_of(claim) != reference.get("uid")
        or spec_of(claim).get("volumeName") != name_of(volume)
    ):
        return
    yield from _placed(caches(PODS).by("claims", key))


def _placed(pods: Iterable[Obj]) -> list[Obj]:
    return [pod for pod in pods if pod_facts.node_name(pod) and not _is_over(pod)]


def _is_over(pod: Obj) -> bool:
    """As upstream: it has ended, or it is to go and none of its containers runs."""
    if pod_facts.is_terminal(pod):
        return True
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    waits = all("running" not in (status.get("state") or {}) for status in statuses)
    return is_deleted(pod) and waits


def _attached_to(caches: Caches, node: str) -> Iterator[Listed]:
    for attachment in caches(VOLUME_ATTACHMENTS).by("node", node):
        is_attached = (attachment.get("status") or {}).get("attached")
        if is_attached and not is_deleted(attachment):
            for key in _of_attachment(caches, attachment):
                yield key.unique_name, name_of(attachment)


# Whom a change concerns.


def _of_volume(volume: Obj | None) -> Iterator[Volume]:
    if volume is None:
        return
    try:
        source = spec_of(translated_volume(volume)).get("csi")
    except NotTranslated:
        return  # its node says why
    if source:
        yield Volume(source.get("driver", ""), source.get("volumeHandle", ""))


def _inline_volumes(pod: Obj) -> Iterator[tuple[str, Obj]]:
    """A pod's own disks by their unique names, as PersistentVolumes."""
    for volume in spec_of(pod).get("volumes") or ():
        if source_of(volume):
            try:
                translated = translated_inline(volume, namespace_of(pod))
            except NotTranslated:
                continue
            csi = spec_of(translated)["csi"]
            yield unique_volume_name(csi["driver"], csi["volumeHandle"]), translated


def _of_claim(caches: Caches, claim: Obj | None) -> Iterator[Volume]:
    name = spec_of(claim).get("volumeName") if claim is not None else None
    if name:
        yield from _of_volume(caches(PERSISTENT_VOLUMES).get(name))


def _of_attachment(caches: Caches, attachment: Obj | None) -> Iterator[Volume]:
    if attachment is not None:
        for name in _volume_name(attachment):
            yield from _of_volume(caches(PERSISTENT_VOLUMES).get(name))
        yield from _inline(attachment)


def _inline(attachment: Obj) -> Iterator[Volume]:
    spec = (spec_of(attachment).get("source") or {}).get("inlineVolumeSpec")
    yield from _of_volume({"spec": spec} if spec else None)


@looks_at(EXISTENCE | NODE | PHASE | DELETION)
def _pod_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterator[Volume]:
    pod = new if new is not None else old
    if pod is None or not pod_facts.node_name(pod):
        return
    if old is not None and new is not None and _need(old) == _need(new):
        return
    for key in claim_keys(pod):
        yield from _of_claim(caches, caches(PERSISTENT_VOLUME_CLAIMS).get(key))
    for _, volume in _inline_volumes(pod):
        yield from _of_volume(volume)


def _need(pod: Obj) -> tuple[str, bool]:
    return pod_facts.node_name(pod), _is_over(pod)


def _claim_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterator[Volume]:
    if old is None or new is None or _bound(old) != _bound(new):
        yield from _of_claim(caches, new if new is not None else old)


def _bound(claim: Obj) -> object:
    return spec_of(claim).get("volumeName")


def _volume_changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterator[Volume]:
    facts = [
        (spec_of(item).get("claimRef"), spec_of(item).get("accessModes"))
        for item in (old, new)
        if item is not None
    ]
    if len(facts) < 2 or facts[0] != facts[1]:
        yield from _of_volume(new if new is not None else old)


def _node_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterator[Volume]:
    node = new if new is not None else old
    if node is None or (old is not None and new is not None and _facts(old) == _facts(new)):
        return
    for attachment in caches(VOLUME_ATTACHMENTS).by("node", name_of(node)):
        yield from _of_attachment(caches, attachment)
    if old is None:
        volumes = caches(PERSISTENT_VOLUMES)
        for driver in list(volumes.index_values("driver")):
            for volume in volumes.by("driver", driver):
                if any(pod_facts.node_name(pod) == name_of(node) for pod in _users(caches, volume)):
                    yield from _of_volume(volume)
        pods = caches(PODS)
        for name in list(pods.index_values("disks")):
            for pod in pods.by("disks", name):
                if pod_facts.node_name(pod) == name_of(node):
                    yield from _pod_changed(caches, None, pod)


def _facts(node: Obj) -> tuple[object, ...]:
    status = node.get("status") or {}
    return (
        status.get("volumesInUse"), status.get("volumesAttached"), node_facts.is_ready(node),
        node_facts.taints_of(node), MANAGED in annotations_of(node),
    )  # fmt: skip


def _driver_changed(caches: Caches, old: Obj | None, new: Obj | None) -> Iterator[Volume]:
    driver = new if new is not None else old
    if driver is not None:
        for volume in caches(PERSISTENT_VOLUMES).by("driver", name_of(driver)):
            yield from _of_volume(volume)
        pods = caches(PODS)
        for name in list(pods.index_values("disks")):
            for pod in pods.by("disks", name):
                yield from _pod_changed(caches, None, pod)


# Indices.


@looks_at(EXISTENCE | SPEC)
def _handle(volume: Obj) -> Iterable[str]:
    return [key.unique_name for key in _of_volume(volume)]


@looks_at(EXISTENCE | SPEC)
def _driver(volume: Obj) -> Iterable[str]:
    return [key.driver for key in _of_volume(volume)]


@looks_at(SPEC)
def _disks(pod: Obj) -> Iterable[str]:
    return [name for name, _ in _inline_volumes(pod)]


def _node(attachment: Obj) -> Iterable[str]:
    return (spec_of(attachment).get("nodeName", ""),)


def _volume_name(attachment: Obj) -> Iterable[str]:
    name = (spec_of(attachment).get("source") or {}).get("persistentVolumeName")
    return (name,) if name else ()


def _inline_name(attachment: Obj) -> Iterable[str]:
    return [key.unique_name for key in _inline(attachment)]

"""VolumeBinding: bound volumes must be within reach; claims that wait for a pod must find one."""

from collections.abc import Iterator

import numpy as np

from sampan.api.rules.node_selectors import Term
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.model.arrays import BoolArray
from sampan.scheduler.model.node_masks import any_term, label_mask
from sampan.scheduler.model.pod_info import PodShape
from sampan.scheduler.model.volumes import Capacity, Claim, Volume

NOT_REACHED = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def beforehand(pod: PodShape, nodes: Snapshot) -> str | None:
    """What is wrong with the claims themselves, whatever the node."""
    known = nodes.volumes
    own = {item.key: item for item in pod.own_claims}
    for key in pod.claims:
        claim, name = known.claims.get(key), key.partition("/")[2]
        if claim is None and key in own:
            waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            return f'{waiting} "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.lost:
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                f'"{claim.volume}"'
            )
        if claim.deleted:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if key in own and claim.owner != own[key].uid:
            return f"PVC {key} was not created for pod {own[key].pod} (pod is not owner)"
    for claim in _unbound(pod, nodes):
        wanted = known.classes.get(claim.storage_class)
        if wanted is None or not wanted.waits:
            return UNBOUND
    return None


def mask(pod: PodShape, nodes: Snapshot) -> BoolArray | None:
    if not pod.claims:
        return None
    bindable, roomy = _bindable(pod, nodes)
    return _reachable_nodes(pod, nodes) & _existing(pod, nodes) & bindable & roomy


def reasons(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> dict[str, int]:
    """A node may be refused for several of these, and then counts for each."""
    bindable, roomy = _bindable(pod, nodes)
    parts = (
        (NOT_REACHED, _reachable_nodes(pod, nodes)),
        (NO_VOLUME, _existing(pod, nodes)),
        (NOTHING_TO_BIND, bindable),
        (NO_SPACE, roomy),
    )
    found = {text: int((refused & ~part).sum()) for text, part in parts}
    return {text: count for text, count in found.items() if count}


def unresolvable(pod: PodShape, nodes: Snapshot, refused: BoolArray) -> BoolArray:
    return refused


def bindings(pod: PodShape, nodes: Snapshot, at: int) -> list[tuple[Claim, Volume | None]]:
    """For one node: which volume each claim that waits is to have; None: one is provisioned."""
    taken: set[str] = set()
    found: list[tuple[Claim, Volume | None]] = []
    for claim in _unbound(pod, nodes):
        choice = None
        for volume in nodes.volumes.offered_to(claim):
            if volume.name not in taken and _within(volume.terms, nodes)[at]:
                choice = volume
                taken.add(volume.name)
                break
        found.append((claim, choice))
    return found


def _unbound(pod: PodShape, nodes: Snapshot) -> list[Claim]:
    """The smallest first, as upstream: large volumes are left to large claims."""
    known = (nodes.volumes.claims.get(key) for key in pod.claims)
    waiting = [item for item in known if item is not None and not nodes.volumes.is_bound(item)]
    return sorted(waiting, key=lambda item: item.size)


def _reachable_nodes(pod: PodShape, nodes: Snapshot) -> BoolArray:
    reached: BoolArray = np.ones(len(nodes), np.bool_)
    for key in pod.claims:
        claim = nodes.volumes.claims.get(key)
        volume = nodes.volumes.volumes.get(claim.volume) if claim is not None else None
        if volume is not None:
            reached &= (
                _within(volume.terms, nodes) if not volume.plugin else _by_driver(volume, nodes)
            )
    return reached


def _by_driver(volume: Volume, nodes: Snapshot) -> BoolArray:
    """Of a disk of an in-tree plugin: where a driver stands for it, its own keys count."""
    there = _within(volume.terms, nodes)
    moved: BoolArray = np.zeros(len(nodes), np.bool_)
    for node, plugins in nodes.volumes.migrated.items():
        at = nodes.at.get(node)
        if at is not None and volume.plugin in plugins:
            moved[at] = True
    found: BoolArray = np.where(moved, _within(volume.driver_terms, nodes), there)
    return found


def _existing(pod: PodShape, nodes: Snapshot) -> BoolArray:
    known = nodes.volumes
    for key in pod.claims:
        claim = known.claims.get(key)
        if claim is not None and known.is_bound(claim) and claim.volume not in known.volumes:
            return np.zeros(len(nodes), np.bool_)
    return np.ones(len(nodes), np.bool_)


def _bindable(pod: PodShape, nodes: Snapshot) -> tuple[BoolArray, BoolArray]:
    """Where each claim takes a volume or has one provisioned, and where there is space for it."""
    good: BoolArray = np.ones(len(nodes), np.bool_)
    roomy: BoolArray = np.ones(len(nodes), np.bool_)
    for claim, _, left in taken_volumes(pod, nodes):
        if claim.selected_node:
            good &= _nodes_called(claim.selected_node, nodes)
        made = _provisionable_nodes(claim, nodes)
        good &= ~left | made
        roomy &= ~(left & made) | _with_space(claim, nodes)
    return good, roomy


def taken_volumes(
    pod: PodShape, nodes: Snapshot
) -> Iterator[tuple[Claim, list[tuple[Volume, BoolArray]], BoolArray]]:
    """Claim by claim, each node takes the smallest volume that it can reach and has not taken:
    which nodes take each volume, and for which none is left."""
    taken: dict[str, BoolArray] = {}
    for claim in _unbound(pod, nodes):
        left: BoolArray = np.ones(len(nodes), np.bool_)
        found = []
        for volume in nodes.volumes.offered_to(claim):
            free = left & _within(volume.terms, nodes)
            if volume.name in taken:
                free &= ~taken[volume.name]
            taken[volume.name] = taken.get(volume.name, np.zeros(len(nodes), np.bool_)) | free
            left &= ~free
            found.append((volume, free))
        yield claim, found, left


def _with_space(claim: Claim, nodes: Snapshot) -> BoolArray:
    """As upstream: only a driver that says so tracks its capacity, and then one report must cover
    the node and be large enough."""
    if not is_tracked(claim, nodes):
        return np.ones(len(nodes), np.bool_)
    space: BoolArray = np.zeros(len(nodes), np.bool_)
    for _, there in sufficient(claim, nodes):
        space |= there
    return space


def sufficient(claim: Claim, nodes: Snapshot) -> Iterator[tuple[Capacity, BoolArray]]:
    """Reports of enough storage for a claim, and which nodes can reach it."""
    for capacity in nodes.volumes.capacities.values():
        if (
            capacity.storage_class == claim.storage_class
            and capacity.most >= claim.size
            and capacity.nodes is not None
        ):
            there: BoolArray = np.ones(len(nodes), np.bool_)
            for requirement in capacity.nodes:
                there &= label_mask(requirement, nodes)
            yield capacity, there


def is_tracked(claim: Claim, nodes: Snapshot) -> bool:
    """Whether somebody says how much storage there is for a claim."""
    wanted = nodes.volumes.classes.get(claim.storage_class)
    return wanted is not None and bool(claim.size) and wanted.provisioner in nodes.volumes.tracking


def _nodes_called(name: str, nodes: Snapshot) -> BoolArray:
    named: BoolArray = np.zeros(len(nodes), np.bool_)
    if name in nodes.at:
        named[nodes.at[name]] = True
    return named


def _provisionable_nodes(claim: Claim, nodes: Snapshot) -> BoolArray:
    wanted = nodes.volumes.classes.get(claim.storage_class)
    if wanted is None or not wanted.provisions:
        return np.zeros(len(nodes), np.bool_)
    return _within(wanted.topologies or None, nodes)


def _within(terms: tuple[Term, ...] | None, nodes: Snapshot) -> BoolArray:
    if terms is None:
        return np.ones(len(nodes), np.bool_)
    return any_term(terms, nodes)


VOLUME_BINDING = Filter("VolumeBinding", mask, reasons, unresolvable, beforehand=beforehand)

"""Entries of CSINode, and the annotations and labels of CSI drivers on the Node. Pure.

Job: a driver's own word about the node → the CSINode and the patch of the Node that say it.
Invariant: what other drivers of the node said stays.
"""

import json
from collections.abc import Mapping
from dataclasses import field

from sampan.api.objects import Obj, annotations_of, copy_of, labels_of, meta_of
from sampan.api.resources import CSI_NODES
from sampan.api.rules.storage import MIGRATED_PLUGINS
from sampan.api.rules.volumes.in_tree_volumes import IN_TREE
from sampan.core.fast_dataclass import dataclass

NODE_ID_ANNOTATION = "csi.volume.kubernetes.io/nodeid"
MIGRATED = ",".join(sorted(each.plugin for each in IN_TREE.values()))
_LARGEST_COUNT = 2**31 - 1


class TopologyCollision(Exception):
    """The driver says that the node is elsewhere than its labels say."""


@dataclass(frozen=True, slots=True)
class DriverNode:
    """NodeGetInfo's answer."""

    driver: str
    node_id: str
    most_volumes: int = 0  # 0: it does not say
    topology: Mapping[str, str] = field(default_factory=dict)


def new_csi_node(node_name: str, node_uid: str) -> Obj:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid}
    return {
        "apiVersion": CSI_NODES.api_version,
        "kind": CSI_NODES.kind,
        "metadata": {
            "name": node_name,
            "annotations": {MIGRATED_PLUGINS: MIGRATED},
            "ownerReferences": [owner],
        },
        "spec": {"drivers": []},
    }


def is_owned_by(csi_node: Obj, node_name: str, node_uid: str) -> bool:
    return any(
        owner.get("kind") == "Node"
        and owner.get("name") == node_name
        and owner.get("uid") == node_uid
        for owner in meta_of(csi_node).get("ownerReferences") or ()
    )


def with_marks(csi_node: Obj) -> Obj | None:
    """None: nothing has to change."""
    if annotations_of(csi_node).get(MIGRATED_PLUGINS) == MIGRATED:
        return None
    changed: Obj = copy_of(csi_node)
    changed["metadata"].setdefault("annotations", {})[MIGRATED_PLUGINS] = MIGRATED
    return changed


def with_driver(csi_node: Obj, said: DriverNode) -> Obj | None:
    """None: nothing has to change."""
    drivers = (csi_node.get("spec") or {}).get("drivers") or []
    wanted: Obj = {"name": said.driver, "nodeID": said.node_id}
    wanted["topologyKeys"] = sorted(said.topology) or None
    if said.most_volumes > 0:
        wanted["allocatable"] = {"count": min(said.most_volumes, _LARGEST_COUNT)}
    known = next((item for item in drivers if item.get("name") == said.driver), None)
    if known is not None and _facts(known) == _facts(wanted):
        return with_marks(csi_node)
    others = [item for item in drivers if item.get("name") != said.driver]
    changed: Obj = copy_of(with_marks(csi_node) or csi_node)
    changed["spec"] = {"drivers": [*others, wanted]}
    return changed


def without_driver(csi_node: Obj, name: str) -> Obj | None:
    """None: it is not there."""
    drivers = (csi_node.get("spec") or {}).get("drivers") or []
    left = [item for item in drivers if item.get("name") != name]
    if len(left) == len(drivers):
        return None
    changed: Obj = copy_of(csi_node)
    changed["spec"] = {"drivers": left}
    return changed


def _facts(driver: Obj) -> tuple[object, ...]:
    count = (driver.get("allocatable") or {}).get("count")
    return driver.get("nodeID"), sorted(driver.get("topologyKeys") or ()), count


def node_patch_with(node: Obj, said: DriverNode) -> Obj | None:
    """A merge patch; None: nothing has to change. Raises TopologyCollision, ValueError."""
    for key, value in said.topology.items():
        known = labels_of(node).get(key)
        if known is not None and known != value:
            raise TopologyCollision(
                f'detected topology value collision: driver reported "{key}":"{value}" but '
                f'existing label is "{key}":"{known}"'
            )
    ids = node_ids(node)
    labels = {
        key: value for key, value in said.topology.items() if labels_of(node).get(key) != value
    }
    if ids.get(said.driver) == said.node_id and not labels:
        return None
    marks = {NODE_ID_ANNOTATION: _compact({**ids, said.driver: said.node_id})}
    return _patch(node, marks, labels)


def node_patch_without(node: Obj, name: str) -> Obj | None:
    """A merge patch; None: nothing has to change. Raises ValueError."""
    ids = node_ids(node)
    if name not in ids:
        return None
    del ids[name]
    return _patch(node, {NODE_ID_ANNOTATION: _compact(ids) if ids else None}, {})


def node_ids(node: Obj) -> dict[str, str]:
    """How each driver calls the node. Raises ValueError."""
    written = annotations_of(node).get(NODE_ID_ANNOTATION)
    return dict(json.loads(written)) if written else {}


def _compact(ids: Mapping[str, str]) -> str:
    return json.dumps(ids, separators=(",", ":"), sort_keys=True)


def _patch(node: Obj, marks: Mapping[str, str | None], labels: Mapping[str, str]) -> Obj:
    """With the revision that was read: the marks of all drivers are one text."""
    metadata: Obj = {"resourceVersion": meta_of(node).get("resourceVersion"), "annotations": marks}
    if labels:
        metadata["labels"] = dict(labels)
    return {"metadata": metadata}

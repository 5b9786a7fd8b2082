"""What a pod without a node waits for, where that is a volume. Pure.

Job: the pod's claims, their classes and the node that was chosen for them → lines.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, annotations_of, name_of, namespace_of, spec_of, status_of
from sampan.api.quantity import value_of
from sampan.api.rules.storage import LOCAL_PROVISIONER, LOCAL_ROOT, SELECTED_NODE


def waiting_for_volumes(pod: Obj, objects: Sequence[Obj]) -> list[str]:
    lines: list[str] = []
    for name in _claims(pod):
        claim = _find(objects, "PersistentVolumeClaim", name, namespace_of(pod))
        if claim is None:
            lines.append(f"Its claim {name} does not exist: create it.")
        elif status_of(claim).get("phase") != "Bound":
            lines.append(_why(claim, objects))
    return lines


def _claims(pod: Obj) -> Iterable[str]:
    for volume in spec_of(pod).get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]
        elif "ephemeral" in volume:
            yield f"{name_of(pod)}-{volume['name']}"


def _why(claim: Obj, objects: Sequence[Obj]) -> str:
    said = f"It waits for its claim {name_of(claim)}"
    name = spec_of(claim).get("storageClassName") or ""
    if not name:
        return f"{said}, which has no class: a volume without one must be made for it."
    storage_class = _find(objects, "StorageClass", name)
    if storage_class is None:
        return f"{said}: there is no StorageClass {name}."
    maker = storage_class.get("provisioner") or ""
    chosen = annotations_of(claim).get(SELECTED_NODE)
    if not chosen:
        return f"{said}: {_no_room(claim, name, objects) or _has_to_make(maker, name)}"
    said = f"{said}: {maker} has to make a volume of class {name} on node {chosen}"
    node = _find(objects, "Node", chosen)
    if maker == LOCAL_PROVISIONER and node is not None and LOCAL_ROOT not in annotations_of(node):
        return f"{said}, which keeps none: use volumes that exist, or another node."
    return f"{said}, and has not done so yet."


def _has_to_make(maker: str, storage_class: str) -> str:
    return f"{maker} has to make a volume of class {storage_class}."


def _no_room(claim: Obj, storage_class: str, objects: Sequence[Obj]) -> str:
    """Where the driver says how much is left, and that is not enough anywhere."""
    rooms = [
        (value_of(item.get("maximumVolumeSize") or item.get("capacity") or "0"), item)
        for item in objects
        if item.get("kind") == "CSIStorageCapacity"
        and item.get("storageClassName") == storage_class
    ]
    requests = (spec_of(claim).get("resources") or {}).get("requests") or {}
    wanted = requests.get("storage") or "0"
    if not rooms or any(room >= value_of(wanted) for room, _ in rooms):
        return ""
    most, place = max(rooms, key=lambda room: room[0])
    labels = (place.get("nodeTopology") or {}).get("matchLabels") or {}
    where = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return (
        f"it asks for {wanted}, and of class {storage_class} there is room for {most} at most"
        + (f" (where {where})" if where else "")
        + ": ask for less, or add storage."
    )


def why_not_bound(claim: Obj, objects: Sequence[Obj]) -> tuple[str, str]:
    """Of a claim by itself: why it has no volume, and what to do."""
    name = spec_of(claim).get("storageClassName") or ""
    if not name:
        return "it names no StorageClass, and no volume without one fits", (
            "make a PersistentVolume for it, or name a class: `kubectl get storageclass`"
        )
    storage_class = _find(objects, "StorageClass", name)
    if storage_class is None:
        return f"there is no StorageClass {name}", (
            "create it, or name one that exists: `kubectl get storageclass`"
        )
    maker = storage_class.get("provisioner") or ""
    chosen = annotations_of(claim).get(SELECTED_NODE)
    waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    if waits and not chosen:
        return f"class {name} waits for the first pod that uses it", (
            "create a pod that names the claim; nothing is wrong until then"
        )
    where = f" on node {chosen}" if chosen else ""
    return f"{maker} has not made a volume of class {name}{where} yet", (
        f"does {maker} run? look at its events and logs"
    )


def _find(objects: Sequence[Obj], kind: str, name: str, namespace: str = "") -> Obj | None:
    for item in objects:
        if item.get("kind") == kind and name_of(item) == name and namespace_of(item) == namespace:
            return item
    return None

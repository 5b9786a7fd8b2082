"""Which container holds which devices, on disk as upstream keeps it (kubelet_internal_checkpoint).

Job: note what was allocated, with the plugin's answer; find it again after a restart.
Invariant: what is noted is on disk before its container starts.
Invariant: a checkpoint that cannot be read is as good as none, and said.
Owner: DeviceManager.
"""

import base64
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.resource_managers.numa import Mask, bits_of, mask_of

log = get_logger(__name__)

_NOWHERE = -1  # a device that does not say where it is


@dataclass(frozen=True, slots=True)
class Allocation:
    """Of one resource to one container."""

    devices: Mapping[str, Mask]  # id → where it is
    answer: bytes  # the plugin's ContainerAllocateResponse


Held = dict[str, dict[str, dict[str, Allocation]]]  # uid → container → resource


class PodDevices:
    def __init__(self, path: str) -> None:
        self._path = path
        self._held: Held = {}
        self.known_resources: tuple[str, ...] = ()  # that were registered when it was written

    def read(self) -> None:
        """What an earlier agent wrote. Blocking."""
        try:
            with open(self._path) as file:
                written = json.load(file)
            if written["Checksum"] != _checksum(written["Data"]):
                raise ValueError("its checksum is wrong")
            self._held = _held_of(written["Data"]["PodDeviceEntries"])
            self.known_resources = tuple(written["Data"]["RegisteredDevices"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("device allocations are not known: the checkpoint cannot be read",
                        path=self._path, error=error)  # fmt: skip

    def written(self, registered: Mapping[str, Collection[str]]) -> str:
        """For the disk, as it is now."""
        data = {
            "PodDeviceEntries": list(_entries(self._held)) or None,
            "RegisteredDevices": {name: sorted(ids) for name, ids in sorted(registered.items())},
        }
        return json.dumps({"Data": data, "Checksum": _checksum(data)})

    def add(self, uid: str, container: str, resource: str, allocation: Allocation) -> None:
        self._held.setdefault(uid, {}).setdefault(container, {})[resource] = allocation

    def remove(self, uid: str) -> bool:
        return self._held.pop(uid, None) is not None

    def pods(self) -> Collection[str]:
        return list(self._held)

    def of(self, uid: str, container: str) -> Mapping[str, Allocation]:
        return self._held.get(uid, {}).get(container, {})

    def of_pod(self, uid: str, resource: str) -> frozenset[str]:
        """All devices of a resource that a pod holds."""
        return frozenset(
            device
            for resources in self._held.get(uid, {}).values()
            if resource in resources
            for device in resources[resource].devices
        )

    def held(self, uid: str, container: str, resource: str) -> frozenset[str]:
        found = self.of(uid, container).get(resource)
        return frozenset(found.devices) if found is not None else frozenset()

    def in_use(self, resource: str) -> frozenset[str]:
        return frozenset(device for uid in self._held for device in self.of_pod(uid, resource))

    def resources(self) -> frozenset[str]:
        return frozenset(
            resource
            for containers in self._held.values()
            for resources in containers.values()
            for resource in resources
        )

    def holders(self, resource: str, device: str) -> Iterator[str]:
        """The pods that hold it, by their uids."""
        for uid in self._held:
            if device in self.of_pod(uid, resource):
                yield uid


def _entries(held: Held) -> Iterator[dict[str, Any]]:
    for uid, containers in held.items():
        for container, resources in containers.items():
            for resource, allocation in resources.items():
                yield {
                    "PodUID": uid,
                    "ContainerName": container,
                    "ResourceName": resource,
                    "DeviceIDs": _by_node(allocation.devices),
                    "AllocResp": base64.b64encode(allocation.answer).decode(),
                }


def _by_node(devices: Mapping[str, Mask]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for device, mask in sorted(devices.items()):
        for node in bits_of(mask) or [_NOWHERE]:
            found.setdefault(str(node), []).append(device)
    return found


def _held_of(entries: list[dict[str, Any]] | None) -> Held:
    held: Held = {}
    for entry in entries or ():
        places: dict[str, list[int]] = {}
        for node, devices in entry["DeviceIDs"].items():
            for device in devices:
                places.setdefault(device, [])
                if int(node) != _NOWHERE:
                    places[device].append(int(node))
        found = {device: mask_of(nodes) for device, nodes in places.items()}
        allocation = Allocation(found, base64.b64decode(entry["AllocResp"]))
        containers = held.setdefault(entry["PodUID"], {})
        containers.setdefault(entry["ContainerName"], {})[entry["ResourceName"]] = allocation
    return held


def _checksum(data: object) -> int:
    return zlib.crc32(json.dumps(data, sort_keys=True).encode())

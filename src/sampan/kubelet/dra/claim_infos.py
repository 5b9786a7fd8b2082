"""Claims that are prepared on this node, or may be: as upstream keeps them (dra_manager_state).

Job: which pods use which claim, and which devices its drivers made ready; on disk as text.
Invariant: a claim that a driver was asked to prepare is known until it was unprepared.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from sampan.core.fast_dataclass import dataclass, replace

FILE = "dra_manager_state"
_KIND, _VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"

Key = tuple[str, str]  # namespace, name


class BadCheckpoint(Exception):
    """It cannot be read."""


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    pool: str
    device: str
    requests: tuple[str, ...] = ()  # of the claim; none: any of them
    cdi_devices: tuple[str, ...] = ()
    share: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimInfo:
    uid: str
    name: str
    namespace: str
    pods: frozenset[str] = frozenset()  # by uid
    drivers: Mapping[str, tuple[PreparedDevice, ...]] = field(default_factory=dict)
    prepared: bool = False  # by all its drivers, in this agent's life

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    def used_by(self, uid: str) -> "ClaimInfo":
        return replace(self, pods=self.pods | {uid})

    def left_by(self, uid: str) -> "ClaimInfo":
        return replace(self, pods=self.pods - {uid})

    def with_devices(self, driver: str, devices: Iterable[PreparedDevice]) -> "ClaimInfo":
        return replace(self, drivers={**self.drivers, driver: tuple(devices)})

    def cdi_devices(self, request: str) -> list[str]:
        """`request`: of the claim; empty: all."""
        return [
            name
            for devices in self.drivers.values()
            for device in devices
            if not request or not device.requests or request in device.requests
            for name in device.cdi_devices
        ]


def written(infos: Iterable[ClaimInfo]) -> str:
    listed = [
        {
            "ClaimUID": info.uid,
            "ClaimName": info.name,
            "Namespace": info.namespace,
            "PodUIDs": {uid: {} for uid in sorted(info.pods)},
            "DriverState": {
                driver: {"Devices": [_written(device) for device in devices] or None}
                for driver, devices in info.drivers.items()
            },
        }
        for info in infos
    ]
    said = {"kind": _KIND, "apiVersion": _VERSION, "ClaimInfoStateList": listed}
    data = json.dumps(said, separators=(",", ":"))
    return json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())})


def _written(device: PreparedDevice) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "ShareID": device.share,
        "RequestNames": list(device.requests),
        "CDIDeviceIDs": list(device.cdi_devices),
    }


def read(text: str) -> dict[Key, ClaimInfo]:
    """Raises BadCheckpoint."""
    try:
        outer = json.loads(text)
        data = outer["Data"]
        if zlib.crc32(data.encode()) != outer["Checksum"]:
            raise BadCheckpoint("checkpoint is corrupted")
        found = [_info(item) for item in json.loads(data)["ClaimInfoStateList"] or ()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadCheckpoint(f"{error}") from error
    return {info.key: info for info in found}


def _info(said: Mapping[str, Any]) -> ClaimInfo:
    drivers = {
        driver: tuple(_device(device) for device in state.get("Devices") or ())
        for driver, state in (said.get("DriverState") or {}).items()
    }
    pods = frozenset(said.get("PodUIDs") or ())
    return ClaimInfo(said["ClaimUID"], said["ClaimName"], said["Namespace"], pods, drivers)


def _device(said: Mapping[str, Any]) -> PreparedDevice:
    return PreparedDevice(
        said["PoolName"],
        said["DeviceName"],
        tuple(said.get("RequestNames") or ()),
        tuple(said.get("CDIDeviceIDs") or ()),
        said.get("ShareID"),
    )

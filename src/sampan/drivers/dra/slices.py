"""ResourceSlices of made-up GPUs, and what a container is told of them. Pure.

Job: settings → the slice of a node; allocation results → CDI specification.
"""

from collections.abc import Iterable
from typing import Any

from sampan.api.objects import Obj
from sampan.api.quantity import from_value, value_of
from sampan.api.resources import RESOURCE_SLICES
from sampan.drivers.dra.settings import DraSettings

CDI_VERSION = "0.6.0"


def device_names(settings: DraSettings) -> list[str]:
    whole = [f"gpu-{number}" for number in range(settings.devices)]
    if not settings.partitions:
        return whole
    return [f"{gpu}-part-{part}" for gpu in whole for part in range(settings.partitions)]


def slice_of(settings: DraSettings, node_uid: str) -> Obj:
    """One is enough for 128 devices, the most that it can hold."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": settings.node_name, "uid": node_uid,
             "controller": True}  # fmt: skip
    return {
        "apiVersion": RESOURCE_SLICES.api_version,
        "kind": RESOURCE_SLICES.kind,
        "metadata": {
            "name": f"{settings.node_name}-{settings.name}",
            "ownerReferences": [owner] if node_uid else [],
        },
        "spec": {
            "driver": settings.name,
            "nodeName": settings.node_name,
            "pool": {"name": settings.node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                _device(settings, number, name)
                for number, name in enumerate(device_names(settings))
            ],
        },
    }


def _device(settings: DraSettings, number: int, name: str) -> Obj:
    memory = value_of(settings.memory)
    attributes = {
        "index": {"int": number},
        "model": {"string": "SAMPAN-1"},
        "driverVersion": {"version": "1.0.0"},
        "type": {"string": "partition" if settings.partitions else "gpu"},
    }
    if settings.partitions:
        memory = from_value(memory.value() // settings.partitions, memory.format)
        attributes["parent"] = {"string": name.partition("-part-")[0]}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": str(memory)}}}


def kind_of(settings: DraSettings) -> str:
    """Of its CDI devices."""
    return f"{settings.name}/device"


def cdi_name(settings: DraSettings, claim_uid: str, device: str) -> str:
    return f"{kind_of(settings)}={claim_uid}-{device}"


def results_of(settings: DraSettings, claim: Obj) -> list[Obj]:
    """What was allocated of this driver's devices on this node."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [
        item
        for item in (allocation.get("devices") or {}).get("results") or ()
        if item.get("driver") == settings.name and item.get("pool") == settings.node_name
    ]


def cdi_specification(
    settings: DraSettings, claim_uid: str, results: Iterable[Obj]
) -> dict[str, Any]:
    """Each device as a variable of the environment, with the request that asked for it."""
    return {
        "cdiVersion": CDI_VERSION,
        "kind": kind_of(settings),
        "devices": [
            {
                "name": f"{claim_uid}-{item['device']}",
                "containerEdits": {
                    "env": [
                        f"{_variable(item['device'])}={item.get('request') or ''}",
                        *(["ADMIN_ACCESS=true"] if item.get("adminAccess") else ()),
                    ]
                },
            }
            for item in results
        ],
    }


def _variable(device: str) -> str:
    return f"DEVICE_{device.upper().replace('-', '_')}"

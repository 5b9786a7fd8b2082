"""Devices, classes and claims for tests.

Job: short ways to write them.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj

DRIVER = "gpu.example.com"


def device(name: str, taints: Iterable[str] = (), **attributes: object) -> Obj:
    """Attributes: text, whole numbers, or truth values."""
    kinds = {str: "string", int: "int", bool: "bool"}
    made: Obj = {
        "name": name,
        "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()},
    }
    if marks := [{"key": key, "effect": "NoSchedule"} for key in taints]:
        made["taints"] = marks
    return made


def resource_slice(
    name: str, devices: Iterable[Obj], *, pool: str = "", generation: int = 1, count: int = 1,
    **where: object,
) -> Obj:  # fmt: skip
    """`where`: nodeName, nodeSelector, allNodes or perDeviceNodeSelection."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {
                "name": pool or name,
                "generation": generation,
                "resourceSliceCount": count,
            },
            "devices": list(devices),
            **where,
        },
    }


def device_class(name: str = "gpu", *expressions: str) -> Obj:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


def device_request(name: str = "", *expressions: str, **fields: object) -> Obj:
    """What `exactly`, or one of `firstAvailable`, says."""
    made: Obj = {"deviceClassName": "gpu", **fields}
    if name:
        made["name"] = name
    if expressions:
        made["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    return made


def resource_claim(
    name: str, requests: Iterable[Obj], constraints: Iterable[Obj] = (), **status: object
) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
        "status": status,
    }


def pod_with(*claims: str, name: str = "p", **spec: object) -> Obj:
    meta = {"name": name, "namespace": "default", "uid": name}
    entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    container = {"name": "c", "image": "web"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], "resourceClaims": entries, **spec},
    }

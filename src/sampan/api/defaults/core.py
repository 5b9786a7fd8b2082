"""Defaults of namespaces, nodes, secrets, limit ranges and other small core kinds.

Job: fill in what is missing, as upstream does.
Invariant: a secret's stringData is in its data, and nowhere else, once it is decoded.
"""

import base64

from sampan.api.defaults.fill import fill, part_of, round_amounts, spec_of
from sampan.api.objects import Obj, copy_of

_LIMITS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
NAME_LABEL = "kubernetes.io/metadata.name"


def default_namespace(obj: Obj) -> None:
    meta = part_of(obj, "metadata")
    if meta.get("name"):
        part_of(meta, "labels")[NAME_LABEL] = meta["name"]
    status = part_of(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Active"


def default_node(obj: Obj) -> None:
    """podCIDR is the first of podCIDRs; allocatable is capacity where nothing is held back."""
    spec = spec_of(obj)
    networks, single = spec.get("podCIDRs"), spec.get("podCIDR")
    if single and not networks:
        spec["podCIDRs"] = [single]
    elif networks and not single:
        spec["podCIDR"] = networks[0]
    status = obj.get("status") or {}
    round_amounts(status.get("capacity"), status.get("allocatable"))
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = copy_of(status["capacity"])


def default_secret(obj: Obj) -> None:
    if not obj.get("type"):
        obj["type"] = "Opaque"
    text = obj.pop("stringData", None)
    if text:
        data = part_of(obj, "data")
        for key, value in text.items():
            data[key] = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def default_limit_range(obj: Obj) -> None:
    """For containers: a limit's default is its max, a request's the default limit, else the min."""
    for item in spec_of(obj).get("limits") or ():
        round_amounts(*(item.get(key) for key in _LIMITS))
        if item.get("type") != "Container":
            continue
        default = part_of(item, "default")
        for name, amount in (item.get("max") or {}).items():
            default.setdefault(name, amount)
        request = part_of(item, "defaultRequest")
        for source in (default, item.get("min") or {}):
            for name, amount in source.items():
                request.setdefault(name, amount)
        for key in ("default", "defaultRequest"):
            if not item[key]:
                del item[key]


def default_resource_quota(obj: Obj) -> None:
    round_amounts(spec_of(obj).get("hard"))
    status = obj.get("status") or {}
    round_amounts(status.get("hard"), status.get("used"))


def default_event(obj: Obj) -> None:
    """The core form shows these, even when they are empty."""
    fill(obj, reportingComponent="", reportingInstance="")

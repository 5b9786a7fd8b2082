"""Resource slices: the devices that a driver has to offer, and from which nodes they are reached.

Job: what must hold of a ResourceSlice.
Invariant: whose devices they are, and on which node, never changes.
"""

import re

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    required_value,
    too_long,
    too_many,
)
from sampan.api.objects import Obj, spec_of
from sampan.api.rules import names
from sampan.api.validation.fields import validate_immutable, validate_with
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_node_selector
from sampan.api.validation.storage.device_names import validate_by_name, validate_pool_name
from sampan.api.validation.storage.device_taints import validate_device_taints
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_MOST_DEVICES, _MOST_PROPERTIES, _MOST_VALUE_BYTES = 128, 32, 64
_MOST_WITH_MORE = 64  # of devices that need more room: with taints
_NUMBER, _BEFORE, _BUILD = (
    r"(0|[1-9]\d*)",
    r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)",
    "[0-9a-zA-Z-]+",
)
_VERSION_FORM = lazy_pattern(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE}(\.{_BEFORE})*)?(\+{_BUILD}(\.{_BUILD})*)?",
    re.ASCII,
)
_ONE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def validate_slice(slice_: Obj, errors: Errors) -> None:
    _validate_slice(spec_of(slice_), None, errors)


def validate_slice_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_slice(spec_of(new), spec_of(old), errors)


def _validate_slice(spec: Obj, before: Obj | None, errors: Errors) -> None:
    validate_csi_driver(spec.get("driver") or "", "spec.driver", errors)
    pool = spec.get("pool") or {}
    _validate_pool(pool, "spec.pool", errors)
    if before is not None:
        had = (before.get("pool") or {}).get("name")
        validate_immutable(pool.get("name") or "", had, "spec.pool.name", errors)
        validate_immutable(spec.get("driver") or "", before.get("driver"), "spec.driver", errors)
        validate_immutable(spec.get("nodeName"), before.get("nodeName"), "spec.nodeName", errors)
    _validate_place(spec, errors)
    devices = spec.get("devices") or []
    tainted = any((device or {}).get("taints") for device in devices)
    most = _MOST_WITH_MORE if tainted else _MOST_DEVICES
    if len(devices) > most:
        errors.append(too_many("spec.devices", len(devices), most))
        return
    for index, device in enumerate(devices):
        _validate_device(device or {}, f"spec.devices[{index}]", errors)
    validate_once(devices, "spec.devices", errors)


def validate_once(items: list[Obj], path: str, errors: Errors) -> None:
    """No two of one name."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = (item or {}).get("name") or ""
        if name in seen:
            errors.append(duplicate(place_of_duplicate(f"{path}[{index}]"), name))
        seen.add(name)


def place_of_duplicate(path: str) -> str:
    return path if features.changed("DuplicatesByItem") else f"{path}.name"


def _validate_pool(pool: Obj, path: str, errors: Errors) -> None:
    validate_pool_name(pool.get("name") or "", f"{path}.name", errors)
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        errors.append(
            invalid_value(f"{path}.resourceSliceCount", count, "must be greater than zero")
        )
    if generation < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid_value(f"{path}.generation", generation, why))


def _validate_place(spec: Obj, errors: Errors) -> None:
    given = []
    node = spec.get("nodeName")
    if node:
        given.append("`nodeName`")
        validate_with(names.dns_subdomain, node, "spec.nodeName", errors)
    elif node is not None:
        why = "must be either unset or set to a non-empty string"
        errors.append(invalid_value("spec.nodeName", node, why))
    selector = spec.get("nodeSelector")
    if selector is not None:
        given.append("`nodeSelector`")
        validate_node_selector(selector, "spec.nodeSelector", errors)
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            where = "spec.nodeSelector.nodeSelectorTerms"
            shown = selector.get("nodeSelectorTerms")
            why = "must have exactly one node selector term"
            errors.append(invalid_value(where, shown, why))
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key):
            given.append(f"`{key}`")
        elif spec.get(key) is not None:
            errors.append(
                invalid_value(f"spec.{key}", False, "must be either unset or set to true")
            )
    if not given:
        errors.append(required_value("spec", _ONE_PLACE))
    elif len(given) > 1:
        shown, why = "{" + ", ".join(given) + "}", f"{_ONE_PLACE}, but multiple fields are set"
        errors.append(invalid_value("spec", shown, why))


def _validate_device(device: Obj, path: str, errors: Errors) -> None:
    validate_with(names.dns_label, device.get("name") or "", f"{path}.name", errors)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > _MOST_PROPERTIES:
        why = f"the total number of attributes and capacities must not exceed {_MOST_PROPERTIES}"
        errors.append(invalid_value(path, count, why))
    validate_by_name(attributes, _validate_attribute, f"{path}.attributes", errors)
    validate_by_name(capacity, _validate_capacity, f"{path}.capacity", errors)
    validate_device_taints(device.get("taints") or [], f"{path}.taints", errors)


def _validate_attribute(attribute: Obj, path: str, errors: Errors) -> None:
    given = {key: value for key, value in attribute.items() if value is not None}
    for key in ("string", "version"):
        text = given.get(key)
        if text is None:
            continue
        if key == "version" and not _VERSION_FORM.fullmatch(text):
            why = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(invalid_value(f"{path}.{key}", text, why))
        if len(text.encode()) > _MOST_VALUE_BYTES:
            errors.append(too_long(f"{path}.{key}", _MOST_VALUE_BYTES))
    if len(given) != 1:
        shown = _as_printed(given) if given else ""
        errors.append(invalid_value(path, shown, "exactly one value must be specified"))


def _as_printed(attribute: Obj) -> Obj:
    keys = {"IntValue": "int", "BoolValue": "bool", "StringValue": "string"}
    return {name: attribute.get(key) for name, key in {**keys, "VersionValue": "version"}.items()}


def _validate_capacity(capacity: Obj, path: str, errors: Errors) -> None:
    """Any amount that can be read is one."""


RULES = Rules(names.dns_subdomain, validate_slice, validate_slice_update)

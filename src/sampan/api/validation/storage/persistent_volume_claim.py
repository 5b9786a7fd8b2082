"""Persistent volume claims: access modes, a size, and what may still change.

Job: what must hold of a PersistentVolumeClaim, alone or as a template.
Invariant: a bound claim can only ask for more room, never for less than it has.
"""

from sampan.api import quantity
from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, copy_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.difference import difference
from sampan.api.validation.fields import validate_optional_choice, validate_with
from sampan.api.validation.pod_spec.resources import amount_of
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_label_selector
from sampan.api.validation.storage.persistent_volume import validate_access_modes, validate_size

Errors = list[FieldError]


def validate_claim(claim: Obj, errors: Errors) -> None:
    validate_claim_spec(spec_of(claim), "spec", errors)


def validate_claim_spec(spec: Obj, path: str, errors: Errors) -> None:
    if not spec.get("accessModes"):
        errors.append(required_value(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        validate_label_selector(spec["selector"], f"{path}.selector", errors)
    validate_access_modes(spec, path, errors)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required_value(f"{path}.resources[storage]"))
    else:
        validate_size(size, f"{path}.resources[storage]", errors)
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            validate_with(names.dns_subdomain, spec[key], f"{path}.{key}", errors)
    modes = ("Block", "Filesystem")
    validate_optional_choice(spec.get("volumeMode"), modes, f"{path}.volumeMode", errors)
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            _validate_data_source(spec[key], f"{path}.{key}", errors)


def validate_claim_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_claim(new, errors)
    rest, was = copy_of(spec_of(new)), copy_of(spec_of(old))
    if not was.get("volumeName"):
        was["volumeName"] = rest.get("volumeName")
    if was.get("storageClassName") is None:
        # A class that became the default later may be given to a claim that named none.
        was["storageClassName"] = rest.get("storageClassName")
    if status_of(old).get("phase") == "Bound":
        for spec in (rest, was):
            spec.pop("volumeAttributesClassName", None)
            (spec.get("resources") or {}).pop("requests", None)
    changes = difference("core.PersistentVolumeClaimSpec", was, rest)
    if changes:
        why = (
            "spec is immutable after creation except resources.requests and"
            f" volumeAttributesClassName for bound claims\n{changes}"
        )
        errors.append(field_forbidden("spec", why))
    _validate_growth(new, old, errors)


def _validate_growth(new: Obj, old: Obj, errors: Errors) -> None:
    sizes = (
        _storage(spec_of(new).get("resources")),
        _storage(spec_of(old).get("resources")),
        (status_of(old).get("capacity") or {}).get("storage"),
    )
    wanted, had, actual = (amount_of(size) if size else quantity.ZERO for size in sizes)
    if wanted is None or had is None or actual is None:
        return
    if wanted < had and not wanted > actual:
        path = "spec.resources.requests.storage"
        errors.append(field_forbidden(path, "field can not be less than status.capacity"))


def _storage(resources: Obj | None) -> str | None:
    size: str | None = ((resources or {}).get("requests") or {}).get("storage")
    return size


def _validate_data_source(source: Obj, path: str, errors: Errors) -> None:
    for key in ("name", "kind"):
        if not source.get(key):
            errors.append(required_value(f"{path}.{key}"))


_RESIZE_STATES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
    "NodeResizeInfeasible", "NodeResizePending",
)  # fmt: skip


def validate_claim_status(new: Obj, old: Obj, errors: Errors) -> None:
    status = status_of(new)
    for name, amount in (status.get("capacity") or {}).items():
        _validate_basic_amount(amount, f"status.capacity[{name}]", errors)
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        _validate_resource_key(name, path, errors)
        if state not in _RESIZE_STATES:
            errors.append(not_supported(path, name, _RESIZE_STATES))
    path = "status.allocatedResources"
    for name, amount in (status.get("allocatedResources") or {}).items():
        if _validate_resource_key(name, path, errors):
            _validate_basic_amount(amount, f"{path}[{name}]", errors)


def _validate_basic_amount(written: str, path: str, errors: Errors) -> None:
    amount = amount_of(written)
    if amount is not None and amount.nanos < 0:
        whole = -(-amount.nanos // quantity.NANO)
        errors.append(invalid_value(path, whole, "must be a valid resource quantity"))


def _validate_resource_key(name: str, path: str, errors: Errors) -> bool:
    """Of Kubernetes' own names only storage; True where it is good."""
    wrong = names.qualified_name(name)
    for why in wrong:
        errors.append(invalid_value(path, name, why))
    if wrong:
        return False
    if name != "storage" and ("/" not in name or "kubernetes.io/" in name):
        errors.append(not_supported(path, name, ("storage",)))
        return False
    return True


RULES = Rules(names.dns_subdomain, validate_claim, validate_claim_update, validate_claim_status)

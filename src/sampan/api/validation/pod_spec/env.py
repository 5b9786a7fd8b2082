"""Environment variables of a container and where their values come from.

Job: env and envFrom → causes; also the downward API's field and resource references, which
    volumes share.
Invariant: a variable has a value or exactly one source.
"""

from collections.abc import Collection, Sequence

from sampan.api import features, quantity
from sampan.api.errors import (
    FieldError,
    field_not_found,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import validate_file_path, validate_with

Errors = list[FieldError]

ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
# What a field reference may name at all; the rest is an error of conversion, not of choice.
_KNOWN_FIELDS = frozenset(ENV_FIELDS + VOLUME_FIELDS) | {
    "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host",
}  # fmt: skip
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_BYTE_DIVISORS = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip
_BYTE_RESOURCES = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_env(
    variables: Sequence[Obj], volumes: Collection[str], path: str, errors: Errors
) -> None:
    """`volumes`: the names of those that a file may be in."""
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            errors.append(required_value(f"{path}[{index}].name"))
        else:
            for wrong in names.env_name(name):
                errors.append(invalid_value(f"{path}[{index}].name", name, wrong))
        source = variable.get("valueFrom")
        if source is not None:
            here = f"{path}[{index}].valueFrom"
            _validate_source(variable, source, here, errors)
            volume = (source.get("fileKeyRef") or {}).get("volumeName") or ""
            if source.get("fileKeyRef") is not None and volume not in volumes:
                errors.append(field_not_found(f"{here}.fileKeyRef.volumeName", volume))


def validate_env_from(sources: Sequence[Obj], path: str, errors: Errors) -> None:
    for index, source in enumerate(sources):
        here = f"{path}[{index}]"
        prefix = source.get("prefix")
        if prefix:
            validate_with(names.env_name, prefix, f"{here}.prefix", errors)
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in given:
            _validate_name(source[key], f"{here}.{key}.name", errors)
        if not given:
            why = "must specify one of: `configMapRef` or `secretRef`"
            errors.append(invalid_value(path, "", why))
        elif len(given) > 1:
            why = "may not have more than one field specified at a time"
            errors.append(invalid_value(path, "", why))


def validate_field_ref(reference: Obj, allowed: Sequence[str], path: str, errors: Errors) -> None:
    version, label = reference.get("apiVersion"), reference.get("fieldPath")
    if not version:
        errors.append(required_value(f"{path}.apiVersion"))
        return
    if not label:
        errors.append(required_value(f"{path}.fieldPath"))
        return
    if version != "v1":
        why = f"error converting fieldPath: unsupported pod version: {version}"
        errors.append(invalid_value(f"{path}.fieldPath", label, why))
        return
    base, key = _subscript(label)
    if key is not None:
        _validate_subscript(base, key, label, path, errors)
    elif label not in _KNOWN_FIELDS:
        why = f"error converting fieldPath: field label not supported: {label}"
        errors.append(invalid_value(f"{path}.fieldPath", label, why))
    else:
        field = "spec.nodeName" if label == "spec.host" else label
        if field not in allowed:
            errors.append(not_supported(f"{path}.fieldPath", field, allowed))


def validate_resource_ref(reference: Obj, path: str, errors: Errors, *, in_volume: bool) -> None:
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        errors.append(required_value(f"{path}.containerName"))
    elif not resource:
        errors.append(required_value(f"{path}.resource"))
    elif resource not in _RESOURCES and not _is_huge(resource):
        errors.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    _validate_divisor(resource, reference.get("divisor"), path, errors)


def _validate_source(variable: Obj, source: Obj, path: str, errors: Errors) -> None:
    given = [key for key in _SOURCES if source.get(key) is not None]
    for key in given:
        reference, here = source[key], f"{path}.{key}"
        if key == "fieldRef":
            validate_field_ref(reference, ENV_FIELDS, here, errors)
        elif key == "resourceFieldRef":
            validate_resource_ref(reference, here, errors, in_volume=False)
        elif key == "fileKeyRef":
            _validate_file_key(reference, here, errors)
        else:
            _validate_key_ref(reference, here, errors)
    if not given:
        keys = _SOURCES if features.enabled("EnvFiles") else _SOURCES[:-1]
        *first, last = (f"`{key}`" for key in keys)
        why = f"must specify one of: {', '.join(first)} or {last}"
        errors.append(invalid_value(path, "", why))
    elif variable.get("value"):
        errors.append(invalid_value(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        why = "may not have more than one field specified at a time"
        errors.append(invalid_value(path, "", why))


def _validate_key_ref(reference: Obj, path: str, errors: Errors) -> None:
    name, key = reference.get("name") or "", reference.get("key")
    validate_with(names.dns_subdomain, name, f"{path}.name", errors)
    if not key:
        errors.append(required_value(f"{path}.key"))
    else:
        validate_with(names.config_key, key, f"{path}.key", errors)


def _validate_file_key(reference: Obj, path: str, errors: Errors) -> None:
    key = reference.get("key")
    if not key:
        errors.append(required_value(f"{path}.key"))
    else:
        validate_with(names.env_name, key, f"{path}.key", errors)
    volume = reference.get("volumeName")
    if not volume:
        errors.append(required_value(f"{path}.volumeName"))
    else:
        validate_with(names.dns_label, volume, f"{path}.volumeName", errors)
    file_path = reference.get("path")
    if not file_path:
        errors.append(required_value(f"{path}.path"))
    else:
        validate_file_path(file_path, f"{path}.path", errors)


def _validate_name(reference: Obj, path: str, errors: Errors) -> None:
    name = reference.get("name")
    if not name:
        errors.append(required_value(path))
    else:
        for wrong in names.as_generated(names.dns_subdomain, name):
            errors.append(invalid_value(path, name, wrong))


def _subscript(label: str) -> tuple[str, str | None]:
    """`metadata.labels['app']` → (`metadata.labels`, `app`)."""
    if not label.endswith("']"):
        return label, None
    base, opened, rest = label[:-2].partition("['")
    return (base, rest) if opened and base else (label, None)


def _validate_subscript(base: str, key: str, label: str, path: str, errors: Errors) -> None:
    if base == "metadata.annotations":
        validate_with(names.qualified_name, key.lower(), path, errors)
    elif base == "metadata.labels":
        validate_with(names.qualified_name, key, path, errors)
    else:
        why = f"error converting fieldPath: field label does not support subscript: {label}"
        errors.append(invalid_value(f"{path}.fieldPath", label, why))


def _is_huge(resource: str) -> bool:
    return resource.startswith(("requests.hugepages-", "limits.hugepages-"))


def _validate_divisor(
    resource: str, divisor: str | int | float | None, path: str, errors: Errors
) -> None:
    if not divisor:
        return
    try:
        amount = quantity.value_of(divisor)
    except quantity.QuantityError:
        return  # the schema has refused it
    if not amount:
        return
    written, field = str(amount), f"{path}.divisor"
    if resource in ("limits.cpu", "requests.cpu"):
        if written not in ("1m", "1"):
            why = "only divisor's values 1m and 1 are supported with the cpu resource"
            errors.append(invalid_value(field, resource, why))
        return
    what = "hugepages" if _is_huge(resource) else _BYTE_RESOURCES.get(resource.partition(".")[2])
    if what and written not in _BYTE_DIVISORS:
        listed = ", ".join(_BYTE_DIVISORS)
        why = f"only divisor's values {listed} are supported with the {what} resource"
        errors.append(invalid_value(field, resource, why))

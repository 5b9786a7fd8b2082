"""Disks of clouds, networks and storage systems, as volumes of pods and as PersistentVolumes.

Job: the source of a volume → causes, for what is behind a network.
Invariant: nothing is asked of the storage itself.
"""

from collections.abc import Callable

from sampan.api.errors import FieldError, invalid_value, not_supported, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import (
    validate_descending_path,
    validate_optional_choice,
    validate_required,
    validate_with,
)
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}"
    "/providers/microsoft.compute/disks/{disk-id}"
)
_PAIRS = "must be a host:port pair or multiple pairs separated by commas"
_PAIR_FORM = lazy_pattern(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_MOST_TENANT = 64
_ISCSI_FORMS = {
    "iqn": lazy_pattern(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\s]+)"),
    "eui": lazy_pattern(r"eui.[a-zA-Z0-9]{16}"),
    "naa": lazy_pattern(r"naa.[a-zA-Z0-9]{32}"),
}
_ISCSI_STARTS = "must be valid format starting with iqn, eui, or naa"


def needs(*keys: str) -> Callable[[Obj, str, Errors], None]:
    """A source whose only rule is that some of its fields are there."""

    def check(source: Obj, path: str, errors: Errors) -> None:
        for key in keys:
            validate_required(source.get(key), f"{path}.{key}", errors)

    return check


def git_repo(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("repository"), f"{path}.repository", errors)
    validate_descending_path(source.get("directory") or "", f"{path}.directory", errors)


def _validate_partition(source: Obj, path: str, errors: Errors) -> None:
    partition = source.get("partition") or 0
    if not 0 <= partition <= 255:
        errors.append(invalid_value(f"{path}.partition", partition, names.between(1, 255)))


def gce_disk(source: Obj, path: str, errors: Errors) -> None:
    here = path.replace("gcePersistentDisk", "persistentDisk")  # as upstream calls it there
    validate_required(source.get("pdName"), f"{here}.pdName", errors)
    _validate_partition(source, here, errors)


def aws_disk(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("volumeID"), f"{path}.volumeID", errors)
    _validate_partition(source, path, errors)


def azure_disk(source: Obj, path: str, errors: Errors) -> None:
    needs("diskName", "diskURI")(source, path, errors)
    for key, choices in (
        ("cachingMode", ("None", "ReadOnly", "ReadWrite")),
        ("kind", ("Dedicated", "Managed", "Shared")),
    ):
        validate_optional_choice(source.get(key), choices, f"{path}.{key}", errors)
    uri, managed = source.get("diskURI") or "", source.get("kind") == "Managed"
    form = _MANAGED_DISK if managed else _BLOB_DISK
    if not uri.startswith("/subscriptions/" if managed else "https://"):
        errors.append(not_supported(f"{path}.diskURI", uri, (form,)))


def iscsi(source: Obj, path: str, errors: Errors, *, starts: str = _ISCSI_STARTS) -> None:
    """`starts`: what is said of a name that begins otherwise."""
    validate_required(source.get("targetPortal"), f"{path}.targetPortal", errors)
    name, initiator = source.get("iqn") or "", source.get("initiatorName")
    if name:
        _validate_iscsi_name(name, f"{path}.iqn", starts, errors)
    else:
        errors.append(required_value(f"{path}.iqn"))
    lun = source.get("lun") or 0
    if not 0 <= lun <= 255:
        errors.append(invalid_value(f"{path}.lun", lun, names.between(0, 255)))
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        errors.append(required_value(f"{path}.secretRef"))
    if initiator is not None:
        _validate_iscsi_name(initiator, f"{path}.initiatorname", starts, errors)


def _validate_iscsi_name(name: str, path: str, starts: str, errors: Errors) -> None:
    form = _ISCSI_FORMS.get(name[:3])
    if form is None:
        errors.append(invalid_value(path, name, starts))
    elif not form.search(name) if name.startswith("iqn") else not form.fullmatch(name):
        errors.append(invalid_value(path, name, "must be valid format"))


def flocker(source: Obj, path: str, errors: Errors) -> None:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID")
    if not name and not uuid:
        why = "one of datasetName and datasetUUID is required"
        errors.append(required_value(path, why))
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid_value(path, "resource", why))
    if "/" in name:
        errors.append(invalid_value(f"{path}.datasetName", name, "must not contain '/'"))


def quobyte(source: Obj, path: str, errors: Errors) -> None:
    registry = source.get("registry") or ""
    if not registry:
        errors.append(required_value(f"{path}.registry", _PAIRS))
    elif len((source.get("tenant") or "").encode()) > _MOST_TENANT:
        why = f"must be a UUID and may not exceed a length of {_MOST_TENANT} characters"
        errors.append(required_value(f"{path}.tenant", why))
    else:
        for pair in registry.split(","):
            if not _PAIR_FORM.fullmatch(pair):
                errors.append(invalid_value(f"{path}.registry", registry, _PAIRS))
    validate_required(source.get("volume"), f"{path}.volume", errors)


def fibre_channel(source: Obj, path: str, errors: Errors) -> None:
    targets, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not targets and not ids:
        why = "must specify either targetWWNs or wwids, but not both"
        errors.append(required_value(f"{path}.targetWWNs", why))
    if targets and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid_value(f"{path}.targetWWNs", targets, why))
    if not targets:
        return
    if lun is None:
        why = "lun is required if targetWWNs is specified"
        errors.append(required_value(f"{path}.lun", why))
    elif not 0 <= lun <= 255:
        errors.append(invalid_value(f"{path}.lun", lun, names.between(0, 255)))


def storage_os(source: Obj, path: str, errors: Errors) -> None:
    name, space = source.get("volumeName") or "", source.get("volumeNamespace") or ""
    if name:
        validate_with(names.dns_label, name, f"{path}.volumeName", errors)
    else:
        errors.append(required_value(f"{path}.volumeName"))
    if space:
        validate_with(names.dns_label, space, f"{path}.volumeNamespace", errors)
    validate_named_secret(source, path, errors)


def cinder(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("volumeID"), f"{path}.volumeID", errors)
    validate_named_secret(source, path, errors)


def validate_named_secret(source: Obj, path: str, errors: Errors) -> None:
    secret = source.get("secretRef")
    if secret is not None:
        validate_required(secret.get("name"), f"{path}.secretRef.name", errors)

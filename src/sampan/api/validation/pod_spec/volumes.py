"""The volumes of a pod: names, one source each, and what each source must say.

Job: spec.volumes → causes, and the volumes that are good enough to be mounted.
Invariant: a volume with a fault of its own is not among those returned, as upstream.
"""

from collections.abc import Callable, Sequence

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.rules.tokens.account_token import token_projection
from sampan.api.validation.access.signer_names import (
    KEY_TYPES,
    LEAST_SECONDS,
    bundle_name_rule,
    longest_seconds,
    signer_of_bundle_name,
    validate_signer_name,
    validate_user_annotations,
)
from sampan.api.validation.fields import (
    validate_choice,
    validate_file_path,
    validate_mode,
    validate_no_backsteps,
    validate_optional_choice,
    validate_required,
    validate_with,
)
from sampan.api.validation.pod_spec import disks
from sampan.api.validation.pod_spec.env import (
    VOLUME_FIELDS,
    validate_field_ref,
    validate_resource_ref,
)
from sampan.api.validation.pod_spec.resources import amount_of
from sampan.api.validation.selectors import validate_label_selector

Errors = list[FieldError]
CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_OF_EVERY_POD = token_projection()  # what the server itself gives nearly every pod
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip


def validate_volumes(volumes: Sequence[Obj], path: str, errors: Errors) -> dict[str, Obj]:
    good: dict[str, Obj] = {}
    for index, volume in enumerate(volumes):
        here = f"{path}[{index}]"
        found: Errors = []
        _validate_source(volume, here, found)
        name = volume.get("name") or ""
        if not name:
            found.append(required_value(f"{here}.name"))
        else:
            validate_with(names.dns_label, name, f"{here}.name", found)
        if name in good:
            found.append(duplicate(f"{here}.name", name))
        if found:
            errors.extend(found)
        else:
            good[name] = volume
    return good


def _validate_source(volume: Obj, path: str, errors: Errors) -> None:
    given = [kind for kind in SOURCES if volume.get(kind) is not None]
    if not given:
        errors.append(required_value(path, "must specify a volume type"))
        return
    SOURCES[given[0]](volume[given[0]], f"{path}.{given[0]}", errors)
    for kind in given[1:]:
        errors.append(one_too_many(path, kind))


def one_too_many(path: str, kind: str) -> FieldError:
    named = _MISSPELT.get(kind, kind)
    return field_forbidden(f"{path}.{named}", "may not specify more than 1 volume type")


def _empty_dir(source: Obj, path: str, errors: Errors) -> None:
    limit = source.get("sizeLimit")
    amount = None if limit is None else amount_of(limit)
    if amount is not None and amount.nanos < 0:
        why = "SizeLimit field must be a valid resource quantity"
        errors.append(field_forbidden(f"{path}.sizeLimit", why))


def host_path(source: Obj, path: str, errors: Errors) -> None:
    target = source.get("path")
    if not target:
        errors.append(required_value(f"{path}.path"))
        return
    validate_no_backsteps(target, f"{path}.path", errors)
    validate_optional_choice(source.get("type"), _HOST_PATH_TYPES, f"{path}.type", errors)


def _secret(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("secretName"), f"{path}.secretName", errors)
    _validate_files(source, path, errors)


def _config_map(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("name"), f"{path}.name", errors)
    _validate_files(source, path, errors)


def _validate_files(source: Obj, path: str, errors: Errors) -> None:
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    for index, item in enumerate(source.get("items") or ()):
        _validate_item(item, f"{path}.items[{index}]", errors)


def _validate_item(item: Obj, path: str, errors: Errors) -> None:
    validate_required(item.get("key"), f"{path}.key", errors)
    target = item.get("path") or ""
    validate_required(target, f"{path}.path", errors)
    validate_file_path(target, f"{path}.path", errors)
    validate_mode(item.get("mode"), f"{path}.mode", errors)


def _downward(source: Obj, path: str, errors: Errors) -> None:
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    for file in source.get("items") or ():
        # Upstream names the volume's source here, without the item.
        _validate_downward_file(file, path, errors)


def _validate_downward_file(file: Obj, path: str, errors: Errors) -> None:
    target = file.get("path") or ""
    validate_required(target, f"{path}.path", errors)
    validate_file_path(target, f"{path}.path", errors)
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        validate_field_ref(field, VOLUME_FIELDS, f"{path}.fieldRef", errors)
        if resource is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid_value(path, "resource", why))
    elif resource is not None:
        validate_resource_ref(resource, f"{path}.resourceFieldRef", errors, in_volume=True)
    else:
        errors.append(required_value(path, "one of fieldRef and resourceFieldRef is required"))
    validate_mode(file.get("mode"), f"{path}.mode", errors)


def _validate_projected_source(source: Obj, path: str, errors: Errors) -> None:
    if source == _OF_EVERY_POD:
        return
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        given = [key for key, value in projection.items() if value is not None]
        for kind in given:
            part = projection[kind]
            check = _PROJECTIONS.get(kind)
            if check is not None:
                check(part, f"{here}.{kind}", errors)
            for target in _paths_of(part):
                if target in taken:
                    named = part.get("name") or "" if kind in ("configMap", "secret") else target
                    errors.append(invalid_value(path, named, "conflicting duplicate paths"))
                taken.add(target)
        if len(given) > 1:
            why = "may not specify more than 1 volume type per source"
            errors.append(field_forbidden(here, why))


def _paths_of(part: Obj) -> list[str]:
    paths = [item["path"] for item in part.get("items") or () if item.get("path")]
    return [*paths, *(part[field] for field in ("path", *CERTIFICATE_PATHS) if part.get(field))]


def _named_files(part: Obj, path: str, errors: Errors) -> None:
    validate_required(part.get("name"), f"{path}.name", errors)
    for index, item in enumerate(part.get("items") or ()):
        _validate_item(item, f"{path}.items[{index}]", errors)


def _token(part: Obj, path: str, errors: Errors) -> None:
    seconds = part.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        why = "may not specify a duration less than 10 minutes"
        errors.append(invalid_value(f"{path}.expirationSeconds", seconds, why))
    if seconds is not None and seconds > 1 << 32:
        why = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid_value(f"{path}.expirationSeconds", seconds, why))
    # Upstream names the volume here, without the source.
    here = f"{path.rpartition('.sources')[0]}.path"
    target = part.get("path")
    if not target:
        errors.append(required_value(here))
    else:
        validate_file_path(target, here, errors)


def _trust_bundle(part: Obj, path: str, errors: Errors) -> None:
    by_name, by_signer = part.get("name") is not None, part.get("signerName") is not None
    if by_name and by_signer:
        why = "only one of name and signerName may be used"
        errors.append(invalid_value(path, part, why))
    elif by_name:
        _bundle_by_name(part, path, errors)
    elif by_signer:
        signer = part["signerName"]
        if not signer:
            errors.append(required_value(f"{path}.signerName", "must be a valid signer name"))
        validate_signer_name(signer, f"{path}.signerName", errors)
        validate_label_selector(part.get("labelSelector"), f"{path}.labelSelector", errors)
    else:
        errors.append(required_value(path, "either name or signerName must be specified"))
    target = part.get("path")
    if not target:
        errors.append(required_value(f"{path}.path"))
    else:
        validate_file_path(target, f"{path}.path", errors)


def _bundle_by_name(part: Obj, path: str, errors: Errors) -> None:
    name = part["name"]
    if not name:
        errors.append(required_value(f"{path}.name", "must be a valid object name"))
    for wrong in bundle_name_rule(signer_of_bundle_name(name))(name):
        why = f"not a valid clustertrustbundlename: {wrong}"
        errors.append(invalid_value(f"{path}.name", name, why))
    if part.get("labelSelector") is not None:
        why = "labelSelector must be unset if name is specified"
        errors.append(invalid_value(f"{path}.labelSelector", part["labelSelector"], why))


def _pod_certificate(part: Obj, path: str, errors: Errors) -> None:
    signer = part.get("signerName") or ""
    validate_signer_name(signer, f"{path}.signerName", errors)
    annotations = part.get("userAnnotations") or {}
    validate_user_annotations(annotations, f"{path}.userAnnotations", errors)
    kind = part.get("keyType") or ""
    if kind not in KEY_TYPES:
        errors.append(not_supported(f"{path}.keyType", kind, KEY_TYPES))
    seconds, most = part.get("maxExpirationSeconds"), longest_seconds(signer)
    if seconds is not None and seconds < LEAST_SECONDS:
        why = f"if provided, maxExpirationSeconds must be >= {LEAST_SECONDS}"
        errors.append(invalid_value(f"{path}.maxExpirationSeconds", seconds, why))
    if seconds is not None and seconds > most:
        why = f"if provided, maxExpirationSeconds must be <= {most}"
        errors.append(invalid_value(f"{path}.maxExpirationSeconds", seconds, why))
    paths = [field for field in CERTIFICATE_PATHS if part.get(field)]
    for field in paths:
        validate_file_path(part[field], f"{path}.{field}", errors)
    if not paths:
        why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required_value(path, why))


def nfs(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("server"), f"{path}.server", errors)
    target = source.get("path") or ""
    validate_required(target, f"{path}.path", errors)
    if not target.startswith("/"):
        errors.append(invalid_value(f"{path}.path", target, "must be an absolute path"))


def _csi(source: Obj, path: str, errors: Errors) -> None:
    validate_csi_driver(source.get("driver") or "", f"{path}.driver", errors)
    reference = source.get("nodePublishSecretRef")
    if reference is not None and not reference.get("name"):
        errors.append(required_value(f"{path}.nodePublishSecretRef.name"))


def validate_csi_driver(driver: str, path: str, errors: Errors) -> None:
    if not driver:
        errors.append(required_value(path))
        if features.changed("DriverNameIsToldOnce"):
            return
    if len(driver) > 63:
        errors.append(FieldError("FieldValueTooLong", path, _too_long(63)))
    validate_with(names.dns_subdomain, driver.lower(), path, errors)


def _too_long(limit: int) -> str:
    return f"Too long: may not be more than {limit} bytes"


def _ephemeral(source: Obj, path: str, errors: Errors) -> None:
    if source.get("volumeClaimTemplate") is None:
        errors.append(required_value(f"{path}.volumeClaimTemplate"))


def _image(source: Obj, path: str, errors: Errors) -> None:
    validate_required(source.get("reference"), f"{path}.reference", errors)
    validate_choice(source.get("pullPolicy"), PULL_POLICIES, f"{path}.pullPolicy", errors)


_PROJECTIONS: dict[str, Callable[[Obj, str, Errors], None]] = {
    "secret": _named_files,
    "configMap": _named_files,
    "downwardAPI": _downward,
    "serviceAccountToken": _token,
    "clusterTrustBundle": _trust_bundle,
    "podCertificate": _pod_certificate,
}
# Of volumes and of PersistentVolumes, in upstream's order: of several the first is looked at.
SOURCES: dict[str, Callable[[Obj, str, Errors], None]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": disks.git_repo,
    "gcePersistentDisk": disks.gce_disk,
    "awsElasticBlockStore": disks.aws_disk,
    "secret": _secret,
    "nfs": nfs,
    "iscsi": disks.iscsi,
    "glusterfs": disks.needs("endpoints", "path"),
    "flocker": disks.flocker,
    "persistentVolumeClaim": disks.needs("claimName"),
    "rbd": disks.needs("monitors", "image"),
    "cinder": disks.cinder,
    "cephfs": disks.needs("monitors"),
    "quobyte": disks.quobyte,
    "downwardAPI": _downward,
    "fc": disks.fibre_channel,
    "flexVolume": disks.needs("driver"),
    "configMap": _config_map,
    "azureFile": disks.needs("secretName", "shareName"),
    "vsphereVolume": disks.needs("volumePath"),
    "photonPersistentDisk": disks.needs("pdID"),
    "portworxVolume": disks.needs("volumeID"),
    "azureDisk": disks.azure_disk,
    "storageos": disks.storage_os,
    "projected": _validate_projected_source,
    "scaleIO": disks.needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
# As upstream's messages have them.
_MISSPELT = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}

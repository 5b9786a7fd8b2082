"""Storage classes, CSI drivers and nodes, attachments, capacities, attributes classes.

Job: what must hold of the kinds of storage.k8s.io.
Invariant: what a volume was made from does not change behind its back.
"""

from collections import Counter
from collections.abc import Sequence

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    required_value,
    too_long,
)
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.quantity import canonical, value_of
from sampan.api.rules import names
from sampan.api.validation.declarative import declared, declared_immutable
from sampan.api.validation.fields import (
    MAX_INT32,
    NOT_NEGATIVE,
    Repeats,
    validate_choice,
    validate_immutable,
    validate_not_negative,
    validate_optional_choice,
    validate_required,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec.volumes import validate_csi_driver
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_label_selector
from sampan.api.validation.storage.persistent_volume import validate_inline_volume

Errors = list[FieldError]
_MOST_METADATA_BYTES, _MOST_MESSAGE_BYTES, _MOST_PARAMETERS = 256 * 1024, 1024, 512
_MOST_TOLD = 10  # times, that a term is said to be there already: upstream has no end


def validate_storage_class(storage: Obj, errors: Errors) -> None:
    _validate_provisioner(storage.get("provisioner") or "", "provisioner", errors)
    _validate_parameters(storage, errors)
    policy = storage.get("reclaimPolicy")
    if policy:
        validate_choice(policy, ("Delete", "Retain"), "reclaimPolicy", errors)
    modes = ("Immediate", "WaitForFirstConsumer")
    mode = storage.get("volumeBindingMode")
    if mode is None:
        errors.append(required_value("volumeBindingMode"))
    validate_optional_choice(mode, modes, "volumeBindingMode", errors)
    _validate_topologies(storage.get("allowedTopologies") or (), errors)


def _validate_provisioner(name: str, path: str, errors: Errors) -> None:
    if not name:
        errors.append(required_value(path))
    else:
        validate_with(names.qualified_name, name.lower(), path, errors)


def _validate_parameters(owner: Obj, errors: Errors) -> None:
    parameters = owner.get("parameters") or {}
    if len(parameters) > _MOST_PARAMETERS:
        errors.append(too_long("parameters", _MOST_PARAMETERS))
        return
    if "" in parameters:
        errors.append(invalid_value("parameters", "", "field can not be empty."))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _MOST_METADATA_BYTES:
        errors.append(too_long("parameters", _MOST_METADATA_BYTES))


def _validate_topologies(terms: Sequence[Obj], errors: Errors) -> None:
    # As upstream, which begins with as many empty ones: an empty term is always a duplicate.
    seen = Counter({frozenset[tuple[str, frozenset[str]]](): len(terms)})
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, frozenset[str]] = {}
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, inner = expression.get("key") or "", f"{path}[{number}]"
            values = _distinct(expression.get("values") or (), f"{inner}.values", errors)
            validate_with(names.label_key, key, f"{inner}.key", errors)
            if key in found:
                errors.append(duplicate(f"{inner}.key", key))
            found[key] = frozenset(values)
        said = frozenset(found.items())
        errors += [duplicate(path, "")] * min(seen[said], _MOST_TOLD)
        seen[said] += 1


def _distinct(values: Sequence[str], path: str, errors: Errors) -> set[str]:
    validate_required(values, path, errors)
    found: set[str] = set()
    for index, value in enumerate(values):
        if value in found:
            errors.append(duplicate(f"{path}[{index}]", value))
        found.add(value)
    return found


def validate_storage_class_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_storage_class(new, errors)
    for key in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(key) or None) != (old.get(key) or None):
            errors.append(field_forbidden(key, f"updates to {key} are forbidden."))
    mode = "volumeBindingMode"
    validate_immutable(new.get(mode), old.get(mode), mode, errors)


def validate_csi_driver_object(driver: Obj, errors: Errors) -> None:
    spec = spec_of(driver)
    for mode in spec.get("volumeLifecycleModes") or ():
        choices = ("Persistent", "Ephemeral")
        validate_optional_choice(mode, choices, "spec.volumeLifecycleModes", errors)
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    validate_optional_choice(spec.get("fsGroupPolicy"), policies, "spec.fsGroupPolicy", errors)
    seen: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        audience = request.get("audience") or ""
        if audience in seen:
            errors.append(duplicate(f"spec.tokenRequests[{index}].audience", audience))
        seen.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            path = f"spec.tokenRequests[{index}].expirationSeconds"
            why = "may not specify a duration less than 10 minutes"
            errors.append(invalid_value(path, seconds, why))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        why = "must be greater than or equal to 10 seconds"
        errors.append(invalid_value("spec.nodeAllocatableUpdatePeriodSeconds", period, why))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid_value("spec.serviceAccountTokenInSecrets", in_secrets, why))


def validate_csi_driver_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_csi_driver_object(new, errors)
    # The name of the first is not quite its own, as upstream.
    for key, told in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes",) * 2):
        now, had = spec_of(new).get(key), spec_of(old).get(key)
        if now != had:
            errors.append(invalid_value(f"spec.{told}", now, "field is immutable"))


def validate_csi_node(node: Obj, errors: Errors) -> None:
    seen: set[str] = set()
    for index, driver in enumerate(spec_of(node).get("drivers") or ()):
        path = f"spec.drivers[{index}]"
        name = driver.get("name") or ""
        validate_csi_driver(name, f"{path}.name", errors)
        validate_required(driver.get("nodeID"), f"{path}.nodeID", errors)
        room = (driver.get("allocatable") or {}).get("count")
        validate_not_negative(room, f"{path}.allocatable.count", errors)
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        keys = driver.get("topologyKeys") or []
        is_repeated = Repeats()
        for key in keys:
            if not key:
                errors.append(required_value(path))
            if is_repeated(key):
                errors.append(duplicate(path, key))
            validate_with(names.label_key, key, path, errors)


def validate_csi_node_update(new: Obj, old: Obj, errors: Errors) -> None:
    """A driver's entry stays as it is, but for how much room it has."""
    validate_csi_node(new, errors)
    before = {item.get("name"): item for item in spec_of(old).get("drivers") or ()}
    for driver in spec_of(new).get("drivers") or ():
        had = before.get(driver.get("name"))
        if had is None:
            continue
        if features.enabled("MutableCSINodeAllocatableCount"):
            driver, had = ({**item, "allocatable": None} for item in (driver, had))
        if internal_form("CSINodeDriver", driver) != internal_form("CSINodeDriver", had):
            shown = internal_form("CSINodeDriver", driver)
            errors.append(invalid_value("spec.drivers", shown, "field is immutable"))


def validate_attachment(attachment: Obj, errors: Errors) -> None:
    spec = spec_of(attachment)
    attacher = spec.get("attacher") or ""
    if not attacher:
        errors.append(declared(required_value("spec.attacher")))
    source = spec.get("source") or {}
    named = source.get("persistentVolumeName") is not None
    inline = source.get("inlineVolumeSpec") is not None
    if not named and not inline:
        errors.append(
            required_value(
                "spec.source",
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            )
        )
    elif named and inline:
        why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.append(field_forbidden("spec.source", why))
    elif named and not source["persistentVolumeName"]:
        why = "must specify non empty persistentVolumeName"
        errors.append(required_value("spec.source.persistentVolumeName", why))
    elif inline:
        path = "spec.source.inlineVolumeSpec"
        validate_inline_volume(source["inlineVolumeSpec"], path, errors)
    validate_with(names.dns_subdomain, spec.get("nodeName") or "", "spec.nodeName", errors)


def validate_new_attachment(attachment: Obj, errors: Errors) -> None:
    """What v1 asks of new ones only."""
    validate_attachment(attachment, errors)
    spec = spec_of(attachment)
    _validate_attacher(spec.get("attacher") or "", errors)
    source = spec.get("source") or {}
    if source.get("persistentVolumeName") is not None:
        name = source["persistentVolumeName"]
        validate_with(names.dns_subdomain, name, "spec.source.persistentVolumeName", errors)


def _validate_attacher(attacher: str, errors: Errors) -> None:
    """Of v1: its form, and once more that there is one."""
    found: list[FieldError] = []
    validate_csi_driver(attacher, "spec.attacher", found)
    told_once = features.changed("AttacherIsToldOnce")
    errors += [error for error in found if error.reason != "FieldValueRequired" or not told_once]


def validate_attachment_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_attachment(new, errors)
    if spec_of(new) != spec_of(old):
        shown = internal_form("VolumeAttachmentSpec", spec_of(new))
        errors.append(declared_immutable("spec", shown))


def validate_attachment_status(new: Obj, old: Obj, errors: Errors) -> None:
    status = status_of(new)
    metadata = status.get("attachmentMetadata") or {}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    if size > _MOST_METADATA_BYTES:
        errors.append(too_long("status.attachmentMetadata", _MOST_METADATA_BYTES))
    for key in ("attachError", "detachError"):
        trouble = status.get(key)
        if trouble is None:
            continue
        if len((trouble.get("message") or "").encode()) > _MOST_MESSAGE_BYTES:
            errors.append(too_long(f"status.{key}.message", _MOST_METADATA_BYTES))
        code = trouble.get("errorCode")
        if code is not None and code < 0:
            why = names.between(0, MAX_INT32)
            errors.append(invalid_value(f"status.{key}.errorCode", code, why))


def validate_capacity(capacity: Obj, errors: Errors) -> None:
    name = capacity.get("storageClassName") or ""
    validate_with(names.dns_subdomain, name, "storageClassName", errors)
    validate_label_selector(capacity.get("nodeTopology"), "nodeTopology", errors)
    for key in ("capacity", "maximumVolumeSize"):
        if capacity.get(key) is not None and value_of(capacity[key]).nanos < 0:
            errors.append(invalid_value(key, canonical(capacity[key]), NOT_NEGATIVE))


def validate_capacity_update(new: Obj, old: Obj, errors: Errors) -> None:
    """What the driver was asked for does not change."""
    validate_capacity(new, errors)
    forms = (internal_form("v1.LabelSelector", each.get("nodeTopology")) for each in (new, old))
    now, had = forms
    if now != had:
        errors.append(invalid_value("nodeTopology", now, "field is immutable"))
    name = new.get("storageClassName") or ""
    validate_immutable(name, old.get("storageClassName"), "storageClassName", errors)


def validate_attributes_class(attributes: Obj, errors: Errors) -> None:
    _validate_provisioner(attributes.get("driverName") or "", "driverName", errors)
    _validate_parameters(attributes, errors)
    if not attributes.get("parameters"):
        errors.append(required_value("parameters", "must contain at least one key/value pair"))


def validate_attributes_class_update(new: Obj, old: Obj, errors: Errors) -> None:
    for key in ("driverName", "parameters"):
        if new.get(key) != old.get(key):
            errors.append(field_forbidden(key, f"updates to {key} are forbidden."))
    validate_attributes_class(new, errors)


STORAGE_CLASS = Rules(names.dns_subdomain, validate_storage_class, validate_storage_class_update)
CSI_DRIVER = Rules(names.dns_subdomain, validate_csi_driver_object, validate_csi_driver_update)
CSI_NODE = Rules(names.dns_subdomain, validate_csi_node, validate_csi_node_update)
VOLUME_ATTACHMENT = Rules(
    names.dns_subdomain,
    validate_new_attachment,
    validate_attachment_update,
    validate_attachment_status,
)
CAPACITY = Rules(names.dns_subdomain, validate_capacity, validate_capacity_update)
ATTRIBUTES_CLASS = Rules(
    names.dns_subdomain, validate_attributes_class, validate_attributes_class_update
)

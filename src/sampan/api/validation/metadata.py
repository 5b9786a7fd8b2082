"""What every object's metadata must look like, at create and at update.

Job: metadata → causes. The rule for the name is the kind's own and is passed in.
Invariant: identity (name, namespace, uid, times of creation and deletion) never changes.
"""

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    required_value,
    too_long,
)
from sampan.api.objects import Obj
from sampan.api.rules import names

ANNOTATIONS_LIMIT_BYTES = 256 * 1024
STANDARD_FINALIZERS = ("kubernetes", "foregroundDeletion", "orphan")
_IMMUTABLE = (
    "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds",
)  # fmt: skip
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
Errors = list[FieldError]


def validate_metadata(
    meta: Obj, namespaced: bool, rule: names.NameRule, path: str, errors: Errors
) -> None:
    _validate_name(meta, rule, path, errors)
    namespace = meta.get("namespace")
    if namespaced:
        if not namespace:
            errors.append(required_value(f"{path}.namespace"))
        else:
            for wrong in names.dns_label(namespace):
                errors.append(invalid_value(f"{path}.namespace", namespace, wrong))
    elif namespace:
        errors.append(field_forbidden(f"{path}.namespace", "not allowed on this type"))
    generation = meta.get("generation") or 0
    if generation < 0:
        why = "must be greater than or equal to 0"
        errors.append(invalid_value(f"{path}.generation", generation, why))
    _validate_shared(meta, path, errors)
    finalizers = meta.get("finalizers")
    if finalizers:
        _validate_finalizers(finalizers, f"{path}.finalizers", errors)


def validate_metadata_update(new: Obj, old: Obj, path: str, errors: Errors) -> None:
    revision = new.get("resourceVersion")
    if revision and {**new, "managedFields": None} == {**old, "managedFields": None}:
        # As it was when it was found good: most writes are about something else.
        _validate_managed_fields(new, path, errors)
        return
    if old.get("deletionTimestamp"):
        _validate_no_new_finalizers(new, old, path, errors)
    if not revision:
        why = "must be specified for an update"
        errors.append(invalid_value(f"{path}.resourceVersion", "", why))
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        why = "must not be decremented"
        errors.append(invalid_value(f"{path}.generation", generation, why))
    _validate_immutable(new, old, path, errors)
    _validate_shared(new, path, errors)
    finalizers = new.get("finalizers")
    if finalizers and finalizers != old.get("finalizers"):
        _validate_finalizers(finalizers, f"{path}.finalizers", errors)


def _validate_immutable(new: Obj, old: Obj, path: str, errors: Errors) -> None:
    for key in _IMMUTABLE:
        value, before = new.get(key), old.get(key)
        if value != before and (value or before):
            shown = "" if value is None and key in ("name", "namespace", "uid") else value
            errors.append(invalid_value(f"{path}.{key}", shown, "field is immutable"))


def validate_known_finalizers(meta: Obj, path: str, errors: Errors) -> None:
    """Of built-in kinds only: those of custom resources may have any name."""
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid_value(f"{path}.finalizers[{index}]", finalizer, why))


def validate_labels(labels: dict[str, str], path: str, errors: Errors) -> None:
    for key, value in labels.items():
        if names.is_label(key, value or ""):
            continue
        for wrong in names.label_key(key):
            errors.append(invalid_value(path, key, wrong))
        for wrong in names.label_value(value or ""):
            errors.append(invalid_value(path, value, wrong))


def validate_annotations(annotations: dict[str, str], path: str, errors: Errors) -> None:
    total = 0
    for key, value in annotations.items():
        # The case of an annotation's key is free, for the sake of old ones.
        for wrong in names.qualified_name(key.lower()):
            errors.append(invalid_value(path, key, wrong))
        total += names.size_of(key) + names.size_of(value or "")
    if total > ANNOTATIONS_LIMIT_BYTES:
        errors.append(too_long(path, ANNOTATIONS_LIMIT_BYTES))


def _validate_name(meta: Obj, rule: names.NameRule, path: str, errors: Errors) -> None:
    prefix = meta.get("generateName")
    if prefix:
        for wrong in names.as_generated(rule, prefix):
            errors.append(invalid_value(f"{path}.generateName", prefix, wrong))
    name = meta.get("name")
    if not name:
        errors.append(required_value(f"{path}.name", "name or generateName is required"))
        return
    for wrong in rule(name):
        errors.append(invalid_value(f"{path}.name", name, wrong))


def _validate_shared(meta: Obj, path: str, errors: Errors) -> None:
    labels = meta.get("labels")
    if labels:
        validate_labels(labels, f"{path}.labels", errors)
    annotations = meta.get("annotations")
    if annotations:
        validate_annotations(annotations, f"{path}.annotations", errors)
    owners = meta.get("ownerReferences")
    if owners:
        _validate_owners(owners, f"{path}.ownerReferences", errors)
    _validate_managed_fields(meta, path, errors)


def _validate_owners(owners: list[Obj], path: str, errors: Errors) -> None:
    controller = ""
    for index, owner in enumerate(owners):
        if features.changed("OwnerReferencePaths"):
            _validate_owner(owner, f"{path}[{index}]", errors)
        else:
            _validate_owner_of_old(owner, path, errors)
        if not owner.get("controller"):
            continue
        name = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
        if controller:
            why = (
                'Only one reference can have Controller set to true. Found "true" in references'
                f" for {controller} and {name}"
            )
            shown = [{key: item[key] for key in _OWNER_FIELDS if key in item} for item in owners]
            errors.append(invalid_value(path, shown, why))
        else:
            controller = name


def _validate_owner(owner: Obj, path: str, errors: Errors) -> None:
    api_version = owner.get("apiVersion") or ""
    if api_version and (api_version.count("/") > 1 or api_version.endswith("/")):
        why = "must be <group>/<version> or <version>"
        errors.append(invalid_value(f"{path}.apiVersion", api_version, why))
    for key in ("apiVersion", "kind", "name", "uid"):
        if not owner.get(key):
            errors.append(required_value(f"{path}.{key}", "must not be empty"))
    _validate_may_own(owner, path, errors)


def _validate_owner_of_old(owner: Obj, path: str, errors: Errors) -> None:
    api_version = owner.get("apiVersion") or ""
    version = api_version.rpartition("/")[2]
    if not version:
        errors.append(invalid_value(f"{path}.apiVersion", api_version, "version must not be empty"))
    for key in ("kind", "name", "uid"):
        if not owner.get(key):
            errors.append(invalid_value(f"{path}.{key}", "", "must not be empty"))
    _validate_may_own(owner, path, errors)


def _validate_may_own(owner: Obj, path: str, errors: Errors) -> None:
    if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
        why = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(invalid_value(path, owner, why))


def _validate_finalizers(finalizers: list[str], path: str, errors: Errors) -> None:
    for finalizer in finalizers:
        for wrong in names.qualified_name(finalizer):
            errors.append(invalid_value(path, finalizer, wrong))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid_value(path, finalizers, why))


def _validate_no_new_finalizers(new: Obj, old: Obj, path: str, errors: Errors) -> None:
    known = old.get("finalizers") or ()
    added = sorted(
        {finalizer for finalizer in new.get("finalizers") or () if finalizer not in known}
    )
    if added:
        listed = ", ".join(f'"{item}"' for item in added)
        why = (
            "no new finalizers can be added if the object is being deleted, found new finalizers"
            f" []string{{{listed}}}"
        )
        errors.append(field_forbidden(f"{path}.finalizers", why))


def _validate_managed_fields(meta: Obj, path: str, errors: Errors) -> None:
    path = f"{path}.managedFields"
    for index, entry in enumerate(meta.get("managedFields") or ()):
        operation = entry.get("operation")
        if operation not in ("Apply", "Update"):
            why = "must be `Apply` or `Update`"
            errors.append(invalid_value(f"{path}[{index}].operation", operation or "", why))
        fields_type = entry.get("fieldsType")
        if fields_type and fields_type != "FieldsV1":
            why = "must be `FieldsV1`"
            errors.append(invalid_value(f"{path}[{index}].fieldsType", fields_type, why))
        if "manager" in entry and names.size_of(entry["manager"] or "") > 128:
            errors.append(too_long(f"{path}[{index}].manager", 128))
        if "subresource" in entry and names.size_of(entry["subresource"] or "") > 256:
            errors.append(too_long(f"{path}[{index}].subresource", 256))

"""StorageVersionMigrations: which resource is written anew, and how that went.

Job: what must hold of them.
Invariant: the resource never changes; a migration that has succeeded or failed stays so.
"""

from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.rules.conditions import is_true
from sampan.api.validation.conditions import validate_common_conditions
from sampan.api.validation.fields import IMMUTABLE, validate_immutable
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_VERSION, _CONDITIONS = "status.resourceVersion", "status.conditions"
_WELL_FORMED = lazy_pattern(r"[1-9][0-9]*")
# Ends that may not be taken back, with upstream's name for each.
_ENDS = {"Succeeded": "Success", "Failed": "Failed"}


def validate_migration(migration: Obj, errors: Errors) -> None:
    resource = spec_of(migration).get("resource") or {}
    plural, group = resource.get("resource") or "", resource.get("group") or ""
    if not plural:
        errors.append(required_value("spec.resource.resource", "resource is required to be set"))
    elif complaints := names.dns_1035_label(plural):
        errors.append(invalid_value("spec.resource.resource", plural, ",".join(complaints)))
    if group and (complaints := names.dns_subdomain(group)):
        errors.append(invalid_value("spec.resource.group", group, ",".join(complaints)))


def validate_migration_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_migration(new, errors)
    now, had = (internal_form("StorageVersionMigrationSpec", spec_of(each)) for each in (new, old))
    validate_immutable(now, had, "spec", errors)


def validate_migration_status(new: Obj, old: Obj, errors: Errors) -> None:
    version, had = (status_of(each).get("resourceVersion") or "" for each in (new, old))
    if version and not _WELL_FORMED.fullmatch(version):
        why = f"resource version is not well formed: {version}"
        errors.append(invalid_value(_VERSION, version, why))
    conditions = status_of(new).get("conditions")
    validate_common_conditions(conditions, _CONDITIONS, errors)
    if had and had != version:
        errors.append(invalid_value(_VERSION, version, IMMUTABLE))
    errors += (invalid_value(_CONDITIONS, conditions, why) for why in _impossible(new, old))


def _impossible(new: Obj, old: Obj) -> list[str]:
    found = []
    if is_true(new, "Succeeded") and is_true(new, "Failed"):
        found.append("Both success and failed conditions cannot be true at the same time")
    return found + [
        f"{said} condition cannot be set to false once it is true"
        for kind, said in _ENDS.items()
        if is_true(old, kind) and not is_true(new, kind)
    ]


RULES = Rules(
    names.dns_subdomain, validate_migration, validate_migration_update, validate_migration_status
)

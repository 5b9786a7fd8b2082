"""Custom resource definitions: names, versions, scope, schema, conversion.

Job: what must hold of a CustomResourceDefinition.
Invariant: exactly one version is stored, and each served version has a schema.
"""

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required,
)
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.rules import names
from sampan.api.rules.conditions import is_true
from sampan.api.validation.cluster.webhooks import validate_client
from sampan.api.validation.fields import validate_immutable, validate_with
from sampan.api.validation.rules import Rules

Errors = list[FieldError]


def validate_definition(definition: Obj, errors: Errors) -> None:
    spec = spec_of(definition)
    group, plural = spec.get("group") or "", (spec.get("names") or {}).get("plural") or ""
    if name_of(definition) and name_of(definition) != f"{plural}.{group}":
        why = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", name_of(definition), why))
    if not group:
        errors.append(required("spec.group"))
    else:
        validate_with(names.dns_subdomain, group, "spec.group", errors)
        if "." not in group:
            why = "should be a domain with at least one dot"
            errors.append(invalid_value("spec.group", group, why))
    scope = spec.get("scope") or ""
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    _validate_versions(spec, errors)
    _validate_names(spec.get("names") or {}, errors)
    _validate_conversion(spec, errors)


def validate_definition_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_definition(new, errors)
    spec, was = spec_of(new), spec_of(old)
    if is_true(old, "Established"):
        validate_immutable(spec.get("scope"), was.get("scope"), "spec.scope", errors)
        kind, had = ((one.get("names") or {}).get("kind") for one in (spec, was))
        validate_immutable(kind, had, "spec.names.kind", errors)
    validate_immutable(spec.get("group"), was.get("group"), "spec.group", errors)
    plural, was_plural = ((one.get("names") or {}).get("plural") for one in (spec, was))
    validate_immutable(plural, was_plural, "spec.names.plural", errors)
    known = {one.get("name") for one in spec.get("versions") or ()}
    for index, version in enumerate((new.get("status") or {}).get("storedVersions") or ()):
        if version not in known:
            why = (
                "missing from spec.versions; v1 was previously a storage version, and must remain"
                " in spec.versions until a storage migration ensures no data remains persisted in"
                f" {version} and removes {version} from status.storedVersions"
            ).replace("v1 was", f"{version} was", 1)
            errors.append(invalid_value(f"status.storedVersions[{index}]", version, why))


def _validate_versions(spec: Obj, errors: Errors) -> None:
    versions = spec.get("versions") or []
    if not versions:
        errors.append(required("spec.versions"))
        return
    stored = 0
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name") or ""
        for wrong in names.dns_1035_label(name):
            errors.append(invalid_value(f"{path}.name", name, wrong))
        if name in seen:
            errors.append(
                invalid_value("spec.versions", versions, "must contain unique version names")
            )
        seen.add(name)
        stored += bool(version.get("storage"))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            why = "schemas are required"
            errors.append(required(f"{path}.schema.openAPIV3Schema", why))
        else:
            _validate_schema(schema, f"{path}.schema.openAPIV3Schema", errors)
    if stored != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", versions, why))


def _validate_schema(schema: Obj, path: str, errors: Errors) -> None:
    """Structural at the root; the rest is the business of what compiles it."""
    kind = schema.get("type") or ""
    if not kind:
        errors.append(required(f"{path}.type", "must not be empty at the root"))
    elif kind != "object":
        errors.append(invalid_value(f"{path}.type", kind, "must be object at the root"))


def _validate_names(given: Obj, errors: Errors) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        value, path = given.get(key) or "", f"spec.names.{key}"
        if not value:
            errors.append(required(path))
            continue
        checked = value.lower() if key in ("kind", "listKind") else value
        wrong = names.dns_1035_label(checked)
        if wrong:
            why = ",".join(wrong)
            if key in ("kind", "listKind"):
                why = f"may have mixed case, but should otherwise match: {why}"
            errors.append(invalid_value(path, value, why))
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        why = "kind and listKind may not be the same"
        errors.append(invalid_value("spec.names.listKind", given["listKind"], why))
    for index, name in enumerate(given.get("shortNames") or ()):
        validate_with(names.dns_1035_label, name, f"spec.names.shortNames[{index}]", errors)


def _validate_conversion(spec: Obj, errors: Errors) -> None:
    conversion = spec.get("conversion")
    if conversion is None:
        return
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    path = "spec.conversion"
    if strategy == "Webhook":
        if webhook is None:
            why = 'required when strategy is set to "Webhook"'
            errors.append(required(f"{path}.webhook", why))
        else:
            validate_client(
                webhook.get("clientConfig") or {}, f"{path}.webhook.clientConfig", errors
            )
            if not webhook.get("conversionReviewVersions"):
                errors.append(required(f"{path}.webhook.conversionReviewVersions"))
    elif webhook is not None:
        why = "should not be set when strategy is not set to Webhook"
        errors.append(field_forbidden(f"{path}.webhook", why))
    if not strategy:
        errors.append(required(f"{path}.strategy"))
    elif strategy not in ("None", "Webhook"):
        errors.append(not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))


RULES = Rules(names.dns_subdomain, validate_definition, validate_definition_update)

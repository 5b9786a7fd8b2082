"""CustomResourceDefinitions: names, versions, scope, schemas, conversion.

Job: what must hold of a CustomResourceDefinition.
Invariant: exactly one version is stored, and each version has a schema.

As upstream, what all versions share (schema, subresources, columns, selectable fields) is spoken of
in its old place, `spec.validation` and so on; what differs, in its version.
"""

from typing import Any

from sampan.api.errors import (
    FieldError,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj, annotations_of, name_of, spec_of, status_of
from sampan.api.rules import names
from sampan.api.rules.conditions import is_true
from sampan.api.validation.cluster.webhooks import validate_client
from sampan.api.validation.custom_resources.openapi_schema import (
    is_convertible,
    validate_openapi,
)
from sampan.api.validation.custom_resources.schema_defaults import validate_defaults
from sampan.api.validation.custom_resources.structural_schema import validate_structural
from sampan.api.validation.custom_resources.version_parts import (
    validate_columns,
    validate_selectable_fields,
    validate_subresources,
)
from sampan.api.validation.fields import validate_immutable, validate_with
from sampan.api.validation.rules import Rules

Errors = list[FieldError]

APPROVED = "api-approved.kubernetes.io"
_POLICY = "see https://github.com/kubernetes/enhancements/pull/1111"
_WARNING_LENGTH = 256
_PARTS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def validate_definition(definition: Obj, errors: Errors) -> None:
    _validate_spec(definition, errors)
    _validate_approval(definition, errors)
    _validate_stored(definition, errors)


def validate_definition_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, was = spec_of(new), spec_of(old)
    _validate_spec(new, errors, _same_schemas(spec, was))
    given, had = spec.get("names") or {}, was.get("names") or {}
    if is_true(old, "Established"):
        validate_immutable(spec.get("scope") or "", was.get("scope"), "spec.scope", errors)
        validate_immutable(given.get("kind") or "", had.get("kind"), "spec.names.kind", errors)
    validate_immutable(spec.get("group") or "", was.get("group"), "spec.group", errors)
    validate_immutable(given.get("plural") or "", had.get("plural"), "spec.names.plural", errors)
    if _approval(new) != _approval(old):
        _validate_approval(new, errors)
    _validate_stored(new, errors)


def _same_schemas(spec: Obj, was: Obj) -> frozenset[str]:
    """The versions whose schema did not change."""
    before = {item.get("name"): item for item in was.get("versions") or ()}
    return frozenset(
        name
        for name, version in ((item.get("name"), item) for item in spec.get("versions") or ())
        if name in before and _schema_of(before[name]) == _schema_of(version)
    )


def _validate_spec(definition: Obj, errors: Errors, known: frozenset[str] = frozenset()) -> None:
    """`known`: versions whose schema was there before."""
    spec = spec_of(definition)
    group = spec.get("group") or ""
    if not group:
        errors.append(required_value("spec.group"))
    elif names.dns_subdomain(group):
        validate_with(names.dns_subdomain, group, "spec.group", errors)
    elif "." not in group:
        why = "should be a domain with at least one dot"
        errors.append(invalid_value("spec.group", group, why))
    scope = spec.get("scope") or ""
    if not scope:
        errors.append(required_value("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        errors.append(invalid_value("spec.preserveUnknownFields", True, why))
    _validate_versions(spec, errors, known)
    _validate_names(spec.get("names") or {}, errors)
    _validate_conversion(spec, errors)


def rule_for_name(definition: Obj) -> list[str]:
    """Beyond the form of a name."""
    spec = spec_of(definition)
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    return [] if name_of(definition) == wanted else ['must be spec.names.plural+"."+spec.group']


def _validate_name(definition: Obj, errors: Errors) -> None:
    if name_of(definition):
        for wrong in rule_for_name(definition):
            errors.append(invalid_value("metadata.name", name_of(definition), wrong))


def _validate_created(definition: Obj, errors: Errors) -> None:
    _validate_name(definition, errors)
    validate_definition(definition, errors)


def _schema_of(version: Obj) -> Obj | None:
    schema: Obj | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _validate_versions(spec: Obj, errors: Errors, known: frozenset[str]) -> None:
    versions = spec.get("versions") or []
    for at, version in enumerate(versions):
        _validate_version(version, f"spec.versions[{at}]", errors)
    shown = _internal(spec)
    if len({item.get("name") for item in versions}) != len(versions):
        errors.append(invalid_value("spec.versions", shown, "must contain unique version names"))
    if sum(bool(item.get("storage")) for item in versions) != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", shown, why))
    if versions and versions[0].get("name"):
        validate_with(names.dns_1035_label, versions[0]["name"], "spec.version", errors)
    shared = _share(versions)
    if "schema" not in shared:
        for at, version in enumerate(versions):
            if _schema_of(version) is None:
                errors.append(required_value(f"spec.versions[{at}].schema.openAPIV3Schema"))
    for part in _PARTS:
        if part in shared:
            _validate_part(part, versions[0], _SHARED_PLACES[part], errors, known)
            continue
        for at, version in enumerate(versions):
            _validate_part(part, version, f"spec.versions[{at}].{part}", errors, known)


_SHARED_PLACES = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


def _share(versions: list[Obj]) -> set[str]:
    """Parts that are there, and the same in each version."""
    if not versions:
        return set()
    first = versions[0]
    return {
        part
        for part in _PARTS
        if first.get(part) and all(version.get(part) == first[part] for version in versions)
        and (part != "schema" or _schema_of(first) is not None)
    }  # fmt: skip


def _internal(spec: Obj) -> Any:
    """The versions as upstream's own form prints them."""
    if spec.get("versions") is None:
        return None
    versions = spec["versions"]
    shared = _share(versions)
    return [
        {
            "Name": version.get("name") or "",
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **{
                part[:1].upper() + part[1:]: None if part in shared else version.get(part)
                for part in _PARTS
            },
        }
        for version in versions
    ]


def _validate_version(version: Obj, path: str, errors: Errors) -> None:
    name = version.get("name") or ""
    for wrong in names.dns_1035_label(name):
        errors.append(invalid_value(f"{path}.name", name, wrong))
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    place = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        errors.append(invalid_value(place, warning, "can only be set for deprecated versions"))
    elif not warning:
        errors.append(invalid_value(place, warning, "must not be an empty string"))
    at = next((index for index, item in enumerate(warning) if not item.isprintable()), None)
    if at is not None:
        index = len(warning[:at].encode())
        why = (
            "must only contain printable UTF-8 characters; non-printable character found at "
            f"index {index}"
        )
        errors.append(invalid_value(place, warning, why))
    if len(warning) > _WARNING_LENGTH:
        why = f"must be <= {_WARNING_LENGTH} characters long"
        errors.append(invalid_value(place, warning, why))


def _validate_part(
    part: str, version: Obj, path: str, errors: Errors, known: frozenset[str]
) -> None:
    value = version.get(part)
    if not value:
        return
    if part == "schema":
        schema = _schema_of(version)
        if schema is not None:
            is_known = version.get("name") in known
            validate_schema(schema, f"{path}.openAPIV3Schema", errors, is_known=is_known)
    elif part == "subresources":
        validate_subresources(value, path, errors)
    elif part == "additionalPrinterColumns":
        validate_columns(value, path, errors)
    else:
        validate_selectable_fields(value, _schema_of(version) or {}, path, errors)


def validate_schema(schema: Obj, path: str, errors: Errors, *, is_known: bool = False) -> None:
    found: Errors = []
    validate_openapi(schema, path, found)
    if is_convertible(schema):
        structural: Errors = []
        validate_structural(schema, path, structural)
        if not structural and not found:
            validate_defaults(schema, path, structural)
            _validate_rules(schema, path, structural, is_known)
        found += structural
    elif not found:
        why = "OpenAPIV3Schema 'schema' is not supported"
        found.append(invalid_value(path, "", why))
    errors += found


def _validate_rules(schema: Obj, path: str, errors: Errors, is_known: bool) -> None:
    if "x-kubernetes-validations" not in str(schema):
        return
    # The language takes some milliseconds to load: only for who uses it.
    from sampan.api.validation.custom_resources.rule_expressions import validate_rules

    validate_rules(schema, path, errors, is_known=is_known)


def _validate_names(given: Obj, errors: Errors) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        value, path = given.get(key) or "", f"spec.names.{key}"
        if not value:
            errors.append(required_value(path))
            continue
        mixed = key in ("kind", "listKind")
        for wrong in names.dns_1035_label(value.lower() if mixed else value):
            start = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.append(invalid_value(path, value, f"{start}{wrong}"))
    for at, name in enumerate(given.get("shortNames") or ()):
        validate_with(names.dns_1035_label, name, f"spec.names.shortNames[{at}]", errors)
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        why = "kind and listKind may not be the same"
        errors.append(invalid_value("spec.names.listKind", given["listKind"], why))
    for at, name in enumerate(given.get("categories") or ()):
        validate_with(names.dns_1035_label, name, f"spec.names.categories[{at}]", errors)


def _validate_conversion(spec: Obj, errors: Errors) -> None:
    conversion = spec.get("conversion")
    if conversion is None:
        return
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    path = "spec.conversion"
    if strategy not in ("None", "Webhook"):
        if strategy:
            errors.append(not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))
        else:
            errors.append(required_value(f"{path}.strategy"))
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(field_forbidden(f"{path}.webhookClientConfig", why))
        if reviews:
            errors.append(field_forbidden(f"{path}.conversionReviewVersions", why))
        return
    if client is None:
        why = "required when strategy is set to Webhook"
        errors.append(required_value(f"{path}.webhookClientConfig", why))
    else:
        validate_client(client, f"{path}.webhookClientConfig", errors)
    _validate_reviews(reviews or [], f"{path}.conversionReviewVersions", errors)


def _validate_reviews(versions: list[str], path: str, errors: Errors) -> None:
    if not versions:
        errors.append(required_value(path))
        return
    for at, version in enumerate(versions):
        validate_with(names.dns_1035_label, version, f"{path}[{at}]", errors)
    if len(set(versions)) != len(versions):
        errors.append(invalid_value(path, versions, "must contain unique values"))
    if not {"v1", "v1beta1"} & set(versions):
        why = "must include at least one of v1, v1beta1"
        errors.append(invalid_value(path, versions, why))


def _validate_stored(definition: Obj, errors: Errors) -> None:
    versions = spec_of(definition).get("versions") or []
    storing = [version.get("name") for version in versions if version.get("storage")]
    # Not yet: it begins with the version that is stored.
    begins = storing[:1] if storing and storing[0] else None
    stored = status_of(definition).get("storedVersions") or begins
    path = "status.storedVersions"
    if not stored:
        if all(storing):
            errors.append(invalid_value(path, stored, "must have at least one stored version"))
        return
    storage = storing[-1] if storing else None
    known = {version.get("name") for version in versions}
    for at, version in enumerate(stored):
        if version not in known:
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must"
                " remain in spec.versions until a storage migration ensures no data remains"
                f" persisted in {version} and removes {version} from {path}"
            )
            errors.append(invalid_value(f"{path}[{at}]", version, why))
    if storage is not None and storage not in stored and known.issuperset(stored):
        errors.append(invalid_value(path, stored, f"must have the storage version {storage}"))


def _approval(definition: Obj) -> str:
    return annotations_of(definition).get(APPROVED) or ""


def _validate_approval(definition: Obj, errors: Errors) -> None:
    """Groups of the project itself are not everybody's."""
    group = spec_of(definition).get("group") or ""
    if not any(group == item or group.endswith(f".{item}") for item in ("k8s.io", "kubernetes.io")):
        return
    path, text = f"metadata.annotations[{APPROVED}]", _approval(definition)
    if not text:
        why = f'protected groups must have approval annotation "{APPROVED}", {_POLICY}'
        errors.append(required_value(path, why))
    elif not text.startswith("unapproved") and not _is_url(text):
        why = (
            f'protected groups must have approval annotation "{APPROVED}" with either a URL or a '
            f'reason starting with "unapproved", {_POLICY}'
        )
        errors.append(invalid_value(path, text, why))


def _is_url(text: str) -> bool:
    scheme, colon, rest = text.partition("://")
    return bool(colon and scheme.isalpha() and rest.partition("/")[0] and " " not in text)


RULES = Rules(
    names.dns_subdomain,
    _validate_created,
    validate_definition_update,
)

"""Validation of reviews, bindings and token requests.

Job: what must hold of a question before it is answered.
Invariant: none of these has an identity of its own.
"""

from sampan.api import features
from sampan.api.errors import FieldError, invalid_value, required_value
from sampan.api.objects import Obj, meta_of, namespace_of, spec_of
from sampan.api.rules import names
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod import validate_binding
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_label_requirement, validate_values_given

Errors = list[FieldError]


def validate_token_review(review: Obj, errors: Errors) -> None:
    if not spec_of(review).get("token"):
        errors.append(required_value("spec.token"))


def validate_self_access(review: Obj, errors: Errors) -> None:
    spec = spec_of(review)
    _validate_attributes(spec, errors)
    _validate_selectors(spec, errors)
    _validate_metadata(review, (), errors)


def validate_access(review: Obj, errors: Errors) -> None:
    _validate_subject(spec_of(review), errors)
    _validate_metadata(review, (), errors)


def _validate_subject(spec: Obj, errors: Errors) -> None:
    _validate_attributes(spec, errors)
    if not spec.get("user") and not spec.get("groups"):
        why = "at least one of user or group must be specified"
        errors.append(invalid_value("spec.user", spec.get("user") or "", why))
    _validate_selectors(spec, errors)


_FIELDS = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels",
    "annotations", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip


def _place(field: str) -> int:
    """As upstream's own type has them."""
    return _FIELDS.index(field) if field in _FIELDS else len(_FIELDS)


def _validate_metadata(review: Obj, besides: tuple[str, ...], errors: Errors) -> None:
    meta = meta_of(review)
    if any(meta[key] for key in meta if key not in ("managedFields", *besides)):
        why = "must be empty except for namespace" if besides else "must be empty"
        shown = {key: meta[key] for key in sorted(meta, key=_place) if meta[key]}
        errors.append(invalid_value("metadata", shown, why))


def _validate_selectors(spec: Obj, errors: Errors) -> None:
    attributes = spec.get("resourceAttributes") or {}
    for name, validate in _SELECTORS:
        selector = attributes.get(name)
        if selector is None:
            continue
        path = f"spec.resourceAttributes.{name}"
        raw, requirements = selector.get("rawSelector"), selector.get("requirements")
        if raw and requirements:
            why = "may not specified at the same time as requirements"
            errors.append(invalid_value(f"{path}.rawSelector", raw, why))
        if not raw and not requirements:
            why = f"when {path} is specified, requirements or rawSelector is required"
            errors.append(required_value(f"{path}.requirements", why))
        for index, requirement in enumerate(requirements or ()):
            validate(requirement, f"{path}.requirements[{index}]", errors)


def _validate_field(requirement: Obj, path: str, errors: Errors) -> None:
    if not requirement.get("key"):
        errors.append(required_value(f"{path}.key", "must be specified"))
    validate_values_given(requirement, path, errors)


_SELECTORS = (
    ("fieldSelector", _validate_field),
    ("labelSelector", validate_label_requirement),
)


def validate_local_access(review: Obj, errors: Errors) -> None:
    _validate_subject(spec_of(review), errors)
    _validate_metadata(review, ("namespace",), errors)
    attributes = spec_of(review).get("resourceAttributes") or {}
    if attributes and attributes.get("namespace") != namespace_of(review):
        why = "must match metadata.namespace"
        shown = attributes.get("namespace") or ""
        errors.append(invalid_value("spec.resourceAttributes.namespace", shown, why))
    if spec_of(review).get("nonResourceAttributes") is not None:
        why = "disallowed on this kind of request"
        shown = internal_form("NonResourceAttributes", spec_of(review)["nonResourceAttributes"])
        errors.append(invalid_value("spec.nonResourceAttributes", shown, why))


def _validate_attributes(spec: Obj, errors: Errors) -> None:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    as_a_whole = features.changed("ReviewOfOneThing")
    one = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    if resource is not None and other is not None:
        why = one if as_a_whole else "cannot be specified in combination with resourceAttributes"
        shown = internal_form("NonResourceAttributes", other)
        path = "spec" if as_a_whole else "spec.nonResourceAttributes"
        errors.append(invalid_value(path, shown, why))
    if resource is None and other is None:
        path = "spec" if as_a_whole else "spec.resourceAttributes"
        errors.append(invalid_value(path, None, one))


TOKEN_REVIEW = Rules(names.any_name, validate_token_review, has_identity=False)
SELF_ACCESS = Rules(names.any_name, validate_self_access, has_identity=False)
ACCESS = Rules(names.any_name, validate_access, has_identity=False)
LOCAL_ACCESS = Rules(names.any_name, validate_local_access, has_identity=False)
QUESTION = Rules(names.any_name, has_identity=False)
BINDING = Rules(names.any_name, validate_binding, has_identity=False)

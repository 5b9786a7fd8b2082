"""Roles and their bindings.

Job: what must hold of Role, ClusterRole, RoleBinding and ClusterRoleBinding.
Invariant: a binding's role never changes: delete the binding and make another.
"""

from sampan.api import features
from sampan.api.errors import FieldError, invalid_value, not_supported, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.declarative import declared
from sampan.api.validation.fields import validate_with
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.selectors import validate_label_selector

Errors = list[FieldError]
GROUP = "rbac.authorization.k8s.io"


def validate_role(role: Obj, errors: Errors) -> None:
    for index, rule in enumerate(role.get("rules") or ()):
        path = f"rules[{index}]"
        if rule.get("nonResourceURLs"):
            why = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid_value(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why))
        _validate_rule(rule, path, errors)


def validate_cluster_role(role: Obj, errors: Errors) -> None:
    for index, rule in enumerate(role.get("rules") or ()):
        _validate_rule(rule, f"rules[{index}]", errors)
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(required_value(path, why))
    for index, selector in enumerate(selectors):
        wrong: Errors = []
        validate_label_selector(selector, f"{path}[{index}]", wrong)
        errors += wrong
        if wrong:  # of what could not be read nothing is shown
            errors.append(invalid_value(f"{path}[{index}]", None, "invalid label selector."))


def validate_role_binding(binding: Obj, errors: Errors) -> None:
    _validate_binding(binding, ("Role", "ClusterRole"), errors, namespaced=True)


def validate_cluster_role_binding(binding: Obj, errors: Errors) -> None:
    _validate_binding(binding, ("ClusterRole",), errors, namespaced=False)


def validate_role_binding_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_role_binding(new, errors)
    _validate_same_role(new, old, errors)


def validate_cluster_role_binding_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_cluster_role_binding(new, errors)
    _validate_same_role(new, old, errors)


def _validate_rule(rule: Obj, path: str, errors: Errors) -> None:
    if not rule.get("verbs"):
        why = "verbs must contain at least one value"
        errors.append(declared(required_value(f"{path}.verbs", why)))
    urls = rule.get("nonResourceURLs")
    if urls:
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid_value(f"{path}.nonResourceURLs", urls, why))
        return
    if not rule.get("apiGroups"):
        why = "resource rules must supply at least one api group"
        errors.append(required_value(f"{path}.apiGroups", why))
    if not rule.get("resources"):
        why = "resource rules must supply at least one resource"
        errors.append(required_value(f"{path}.resources", why))


def _validate_binding(
    binding: Obj, kinds: tuple[str, ...], errors: Errors, *, namespaced: bool
) -> None:
    role = binding.get("roleRef") or {}
    group, kind, name = (role.get(key) or "" for key in ("apiGroup", "kind", "name"))
    if group != GROUP:
        errors.append(not_supported("roleRef.apiGroup", group, (GROUP,)))
    if kind not in kinds:
        errors.append(not_supported("roleRef.kind", kind, kinds))
    if not name:
        errors.append(required_value("roleRef.name"))
    else:
        validate_with(names.path_segment, name, "roleRef.name", errors)
    for index, subject in enumerate(binding.get("subjects") or ()):
        _validate_subject(subject, f"subjects[{index}]", errors, namespaced=namespaced)


def _validate_subject(subject: Obj, path: str, errors: Errors, *, namespaced: bool) -> None:
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    group = subject.get("apiGroup") or ""
    if not name:
        errors.append(required_value(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            validate_with(names.dns_subdomain, name, f"{path}.name", errors)
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required_value(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        kinds = ("ServiceAccount", "User", "Group")
        errors.append(not_supported(f"{path}.kind", kind, kinds))


def _validate_same_role(new: Obj, old: Obj, errors: Errors) -> None:
    if new.get("roleRef") != old.get("roleRef"):
        shown = internal_form("RoleRef", new.get("roleRef"))
        is_declared = features.changed("DeclarativeErrors")
        why = "field is immutable" if is_declared else "cannot change roleRef"
        errors.append(declared(invalid_value("roleRef", shown, why)))


ROLE = Rules(names.path_segment, validate_role, same_rules(validate_role))
CLUSTER_ROLE = Rules(names.path_segment, validate_cluster_role, same_rules(validate_cluster_role))
ROLE_BINDING = Rules(names.path_segment, validate_role_binding, validate_role_binding_update)
CLUSTER_ROLE_BINDING = Rules(
    names.path_segment, validate_cluster_role_binding, validate_cluster_role_binding_update
)

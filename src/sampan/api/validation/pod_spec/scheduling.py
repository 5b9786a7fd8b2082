"""Where a pod may run: tolerations, affinity, spreading, gates.

Job: the fields that only the scheduler reads → causes.
Invariant: a selector that can never match is refused where it is required, tolerated where it is
    only preferred.
"""

from collections import Counter
from collections.abc import Sequence

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
from sampan.api.validation.fields import validate_optional_choice, validate_with
from sampan.api.validation.selectors import (
    validate_label_selector,
    validate_node_selector,
    validate_node_term,
)

Errors = list[FieldError]
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# What the server itself gives nearly every pod.
_OF_EVERY_POD = [
    {
        "key": f"node.kubernetes.io/{taint}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for taint in ("not-ready", "unreachable")
]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_tolerations(tolerations: Sequence[Obj], path: str, errors: Errors) -> None:
    for index, toleration in enumerate(tolerations):
        if toleration not in _OF_EVERY_POD:
            _validate_toleration(toleration, f"{path}[{index}]", errors)


def validate_affinity(affinity: Obj, path: str, errors: Errors) -> None:
    node = affinity.get("nodeAffinity")
    if node is not None:
        here = f"{path}.nodeAffinity"
        if node.get(_REQUIRED) is not None:
            validate_node_selector(node[_REQUIRED], f"{here}.{_REQUIRED}", errors)
        for index, term in enumerate(node.get(_PREFERRED) or ()):
            place = f"{here}.{_PREFERRED}[{index}]"
            _validate_weight(term, place, errors)
            preference = term.get("preference") or {}
            validate_node_term(preference, f"{place}.preference", errors, check_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind)
        if terms is not None:
            _validate_pod_affinity(terms, f"{path}.{kind}", errors)


def validate_spread(constraints: Sequence[Obj], path: str, errors: Errors) -> None:
    left = Counter(map(_spread_over, constraints))
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        key, action = _spread_over(constraint)
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            errors.append(invalid_value(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(required_value(f"{here}.topologyKey", "can not be empty"))
        else:
            validate_with(names.label_key, key, f"{here}.topologyKey", errors)
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            choices = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(not_supported(f"{here}.whenUnsatisfiable", action, choices))
        left[key, action] -= 1
        if left[key, action]:  # the earlier one is to blame, once, however many follow
            field = f"{here}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(field, f"{{{key}, {action}}}"))
        _validate_spread_details(constraint, action, here, errors)


def _spread_over(constraint: Obj) -> tuple[str, str]:
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def validate_gates(gates: Sequence[Obj], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        validate_with(names.qualified_name, name, f"{path}[{index}]", errors)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)


def _validate_toleration(toleration: Obj, path: str, errors: Errors) -> None:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        validate_with(names.label_key, key, f"{path}.key", errors)
    elif operator != "Exists":
        why = (
            "operator must be Exists when `key` is empty, which means"
            ' "match all values and all keys"'
        )
        errors.append(invalid_value(f"{path}.operator", operator, why))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid_value(f"{path}.effect", effect, why))
    if operator in ("Equal", ""):
        wrong = names.label_value(value)
        if wrong:
            errors.append(invalid_value(f"{path}.operator", value, ";".join(wrong)))
    elif operator == "Exists":
        if value:
            why = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid_value(f"{path}.operator", value, why))
    else:
        errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, EFFECTS))


def _validate_weight(term: Obj, path: str, errors: Errors) -> None:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        errors.append(invalid_value(f"{path}.weight", weight, "must be in the range 1-100"))


def _validate_pod_affinity(affinity: Obj, path: str, errors: Errors) -> None:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        _validate_pod_term(term, f"{path}.{_REQUIRED}[{index}]", errors)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        _validate_weight(weighted, here, errors)
        _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", errors)


def _validate_pod_term(term: Obj, path: str, errors: Errors) -> None:
    validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector", errors)
    validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", errors)
    for namespace in term.get("namespaces") or ():
        validate_with(names.dns_label, namespace, f"{path}.namespace", errors)
    _validate_label_keys(term, path, errors)
    topology = term.get("topologyKey") or ""
    if not topology:
        errors.append(required_value(f"{path}.topologyKey", "can not be empty"))
    validate_with(names.qualified_name, topology, f"{path}.topologyKey", errors)


def _validate_label_keys(term: Obj, path: str, errors: Errors) -> None:
    """Of a term of affinity or a spread constraint: the selector of a new pod has them already."""
    matching, differing = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    selector = term.get("labelSelector")
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", differing)):
        if keys and selector is None:
            why = "must not be specified when labelSelector is not set"
            errors.append(field_forbidden(f"{path}.{field}", why))
            continue
        for index, key in enumerate(keys):
            validate_with(names.qualified_name, key, f"{path}.{field}[{index}]", errors)
    _validate_keys_once(matching, selector or {}, path, errors)
    for index, key in enumerate(matching):
        if key in differing:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid_value(f"{path}.matchLabelKeys[{index}]", key, why))


def _validate_keys_once(matching: Sequence[str], selector: Obj, path: str, errors: Errors) -> None:
    indices = {key: index for index, key in enumerate(matching)}
    known = {*(selector.get("matchLabels") or ())}
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in indices and key in known:
            why = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid_value(f"{path}[{indices[key]}]", key, why))
        known.add(key)


def _validate_spread_details(constraint: Obj, action: str, path: str, errors: Errors) -> None:
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            errors.append(invalid_value(f"{path}.minDomains", domains, "must be greater than zero"))
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid_value(f"{path}.minDomains", domains, why))
    for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        choices = ("Honor", "Ignore")
        validate_optional_choice(constraint.get(key), choices, f"{path}.{key}", errors)
    _validate_label_keys(constraint, path, errors)
    validate_label_selector(constraint.get("labelSelector"), f"{path}.labelSelector", errors)

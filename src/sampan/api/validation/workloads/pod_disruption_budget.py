"""Pod disruption budgets: one bound, on the pods of one selector.

Job: what must hold of a PodDisruptionBudget.
Invariant: a budget says how many must stay or how many may go, not both.
"""

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj, spec_of, status_of
from sampan.api.rules import names
from sampan.api.validation.conditions import validate_common_conditions
from sampan.api.validation.fields import validate_optional_choice
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.rules import Rules, same_rules
from sampan.api.validation.selectors import validate_label_selector
from sampan.api.validation.workloads.workloads import (
    validate_at_most_all,
    validate_count_or_percent,
    validate_counts,
)

Errors = list[FieldError]


def validate_budget(budget: Obj, errors: Errors) -> None:
    spec = spec_of(budget)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid_value("spec", internal_form("PodDisruptionBudgetSpec", spec), why))
    for key in ("minAvailable", "maxUnavailable"):
        validate_count_or_percent(spec.get(key), f"spec.{key}", errors)
        validate_at_most_all(spec.get(key), f"spec.{key}", errors)
    validate_label_selector(spec.get("selector"), "spec.selector", errors)
    choices = ("AlwaysAllow", "IfHealthyBudget")
    path = "spec.unhealthyPodEvictionPolicy"
    validate_optional_choice(spec.get("unhealthyPodEvictionPolicy"), choices, path, errors)


def validate_budget_status(new: Obj, old: Obj, errors: Errors) -> None:
    validate_common_conditions(status_of(new).get("conditions"), "status.conditions", errors)
    keys = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    validate_counts(status_of(new), "status", keys, errors)


RULES = Rules(
    names.dns_subdomain, validate_budget, same_rules(validate_budget), validate_budget_status
)

"""What the rules of a schema may cost, before any object is there.

Job: compare each rule's worst case, and the sum of all, with what an object's validation may cost.
Invariant: a rule is refused for what it may cost with the largest object that its schema accepts.
"""

from sampan.api.cel.language.checker import Checked
from sampan.api.cel.language.estimator import estimated_cost
from sampan.api.cel.language.sizes import capped
from sampan.api.cel.libraries.estimates import CALL_ESTIMATES
from sampan.api.custom.cel_sizes import Extent
from sampan.api.custom.structural import Structural
from sampan.api.errors import FieldError, field_forbidden
from sampan.core.fast_dataclass import dataclass

Errors = list[FieldError]

PER_RULE = 10_000_000
PER_SCHEMA = 100_000_000
_MOST_BLAMED = 4
_BLAMED_FROM = PER_SCHEMA // 100
_SHARE = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_TOTAL = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"


@dataclass(frozen=True, slots=True)
class _Cost:
    path: str
    cost: int


class RuleCosts:
    """Of one schema. A schema that was there before is not held to the limit of a single rule."""

    def __init__(self, is_known: bool) -> None:
        self._is_known = is_known
        self._total = 0
        self._blamed: list[_Cost] = []

    def add_rule(
        self, checked: Checked, extent: Extent, count: int | None, path: str, errors: Errors
    ) -> None:
        """`count`: how often an object may have the value; None: nothing bounds it."""
        times = extent.most_in_request if count is None else count
        cost = estimated_cost(checked, extent.size_at, CALL_ESTIMATES)
        self._add(capped(cost * times), "estimated rule cost", path, errors)

    def add_message(self, checked: Checked, extent: Extent, path: str, errors: Errors) -> None:
        cost = estimated_cost(checked, extent.size_at, CALL_ESTIMATES)
        self._add(cost, "estimated messageExpression cost", path, errors)

    def add_total(self, path: str, errors: Errors) -> None:
        if self._total <= PER_SCHEMA:
            return
        errors.extend(field_forbidden(blamed.path, _SHARE) for blamed in self._blamed)
        errors.append(field_forbidden(path, _excess(_TOTAL, self._total, PER_SCHEMA)))

    def _add(self, cost: int, what: str, path: str, errors: Errors) -> None:
        if cost > PER_RULE and not self._is_known:
            errors.append(field_forbidden(path, _excess(what, cost, PER_RULE)))
        self._total = capped(self._total + cost)
        if cost >= _BLAMED_FROM:
            found = [*self._blamed, _Cost(path, cost)]
            found.sort(key=lambda blamed: -blamed.cost)
            self._blamed = found[:_MOST_BLAMED]


def most_below(node: Structural) -> int | None:
    """How many values a node has below it in one place; None: nothing bounds them."""
    if node.type == "array":
        most = node.schema.get("maxItems")
    elif node.type == "object" and node.additional is not None:
        most = node.schema.get("maxProperties")
    else:
        return 1
    return None if most is None else max(int(most), 0)


def _excess(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    if factor > 100:
        shown = "more than 100x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems,"
        " maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )

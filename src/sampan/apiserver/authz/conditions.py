"""Match conditions of a webhook authorizer, in CEL.

Job: is this request one that the webhook is to be asked about?
"""

import functools
from collections.abc import Mapping, Sequence

from sampan.api.cel.catalog import KUBERNETES
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CostExceeded, EvaluationError
from sampan.api.cel.language.types import (
    BOOL,
    STRING,
    Type,
    is_dynamic,
    list_of,
    map_of,
    object_type,
)
from sampan.api.cel.program import Program, compile_expression
from sampan.api.objects import Obj
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics

log = get_logger(__name__)

_STRINGS = list_of(STRING)
_SPEC, _RESOURCE, _PATH, _FIELDS, _LABELS, _REQUIREMENT = (
    object_type(f"kubernetes.{item}")
    for item in ("SubjectAccessReviewSpec", "ResourceAttributes", "NonResourceAttributes",
                "FieldSelectorAttributes", "LabelSelectorAttributes", "SelectorRequirement")
)  # fmt: skip
_SELECTOR: dict[str, Type] = {"rawSelector": STRING, "requirements": list_of(_REQUIREMENT)}
_SHAPES: dict[str, dict[str, Type]] = {
    _SPEC.name: {
        "resourceAttributes": _RESOURCE, "nonResourceAttributes": _PATH, "user": STRING,
        "groups": _STRINGS, "uid": STRING, "extra": map_of(STRING, _STRINGS),
    },
    _RESOURCE.name: {
        **dict.fromkeys(("namespace", "verb", "group", "version", "resource", "subresource",
                         "name"), STRING),
        "fieldSelector": _FIELDS, "labelSelector": _LABELS,
    },
    _PATH.name: {"path": STRING, "verb": STRING},
    _FIELDS.name: _SELECTOR,
    _LABELS.name: _SELECTOR,
    _REQUIREMENT.name: {"key": STRING, "operator": STRING, "values": _STRINGS},
}  # fmt: skip
# What is not written has its zero value, as upstream's structure has it.
_EMPTY = {"user": "", "groups": [], "uid": "", "extra": {}}
_EMPTY_RESOURCE = dict.fromkeys(
    ("namespace", "verb", "group", "version", "resource", "subresource", "name"), ""
)


class _Shapes:
    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        return _SHAPES.get(name)


@functools.cache
def _environment() -> Environment:
    return Environment({"request": _SPEC}, KUBERNETES, _Shapes())


def compile_condition(expression: str) -> Program:
    """Raises ValueError."""
    program = compile_expression(expression, _environment())
    if program.result_type != BOOL and not is_dynamic(program.result_type):
        raise ValueError("must evaluate to bool")
    return program


class Conditions:
    """Of one webhook."""

    def __init__(self, expressions: Sequence[str], name: str, metrics: Metrics | None) -> None:
        """Raises ValueError."""
        self._programs = [compile_condition(expression) for expression in expressions]
        self._name = name
        start, labels = "apiserver_authorization_match_condition_evaluation", ("name", "type")
        self._failures = self._excluded = None
        if metrics is not None:
            self._failures = metrics.counter(
                f"{start}_errors_total",
                "Total number of errors when an authorization webhook encounters a match condition "
                "error split by authorizer type and name.",
                labels,
            )
            self._excluded = metrics.counter(
                "apiserver_authorization_match_condition_exclusions_total",
                "Total number of exclusions when an authorization webhook is skipped because match "
                "conditions exclude it.",
                labels,
            )

    def met(self, spec: Obj) -> bool | None:
        """Whether all are true; None: one failed, and none was false."""
        failed = False
        request = _whole(spec)
        for program in self._programs:
            try:
                good = program.evaluate({"request": request}) is True
            except (EvaluationError, CostExceeded) as error:
                log.warning("a match condition failed", authorizer=self._name, error=error)
                failed = True
                continue
            if not good:
                if self._excluded is not None:
                    self._excluded.add(self._name, "Webhook")
                return False
        if failed and self._failures is not None:
            self._failures.add(self._name, "Webhook")
        return None if failed else True


def _whole(spec: Obj) -> Obj:
    found = {**_EMPTY, **spec}
    if "resourceAttributes" in found:
        found["resourceAttributes"] = {**_EMPTY_RESOURCE, **found["resourceAttributes"]}
    return found

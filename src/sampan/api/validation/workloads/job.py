"""Jobs: counts, a template that ends, failure policies; and what may change once it is made.

Job: what must hold of a Job, or of the job that a CronJob makes.
Invariant: a job's pods end: their restart policy is never Always.
"""

from sampan.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required_value,
    too_many,
)
from sampan.api.objects import Obj, copy_of, spec_of, status_of, uid_of
from sampan.api.rules import names, selectors
from sampan.api.validation.fields import (
    validate_choice,
    validate_immutable,
    validate_optional_choice,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec import validate_pod_template
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_label_selector
from sampan.api.validation.workloads.job_status import validate_job_status
from sampan.api.validation.workloads.workloads import validate_counts, validate_selects

Errors = list[FieldError]
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_IMMUTABLE = (
    "selector", "podFailurePolicy", "completionMode", "backoffLimitPerIndex", "managedBy",
    "successPolicy",
)  # fmt: skip
_MOST_INDEXED = 100_000
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


def validate_job(job: Obj, errors: Errors) -> None:
    spec = spec_of(job)
    selector = spec.get("selector")
    _validate_generated(job, selector, errors)
    if selector is None:
        errors.append(required_value("spec.selector"))
    else:
        validate_label_selector(selector, "spec.selector", errors)
    validate_selects(spec, errors)
    validate_job_spec(spec, "spec", errors)


def _validate_generated(job: Obj, selector: Obj | None, errors: Errors) -> None:
    """A selector is the server's own, unless the job says otherwise."""
    uid = uid_of(job)
    if not uid or selector is None or spec_of(job).get("manualSelector"):
        return
    try:
        matches = selectors.from_object(selector).matches({CONTROLLER_UID: uid})
    except selectors.SelectorError:
        return  # said elsewhere
    if not matches:
        errors.append(invalid_value("spec.selector", selector, "`selector` not auto-generated"))


def validate_job_spec(spec: Obj, path: str, errors: Errors) -> None:
    validate_counts(spec, path, _COUNTS, errors)
    _validate_mode(spec, path, errors)
    _validate_policies(spec, path, errors)
    template = spec.get("template") or {}
    validate_pod_template(template, f"{path}.template", errors)
    restart = (template.get("spec") or {}).get("restartPolicy")
    here = f"{path}.template.spec.restartPolicy"
    if restart == "Always":
        errors.append(required_value(here, 'valid values: "OnFailure", "Never"'))
    if spec.get("podFailurePolicy") is not None and restart != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid_value(here, restart or "", why))


def validate_job_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, was = spec_of(new), spec_of(old)
    validate_job_spec(spec, "spec", errors)
    for key in _IMMUTABLE:
        validate_immutable(spec.get(key), was.get(key), f"spec.{key}", errors)
    _validate_completions(spec, was, errors)
    template, had = spec.get("template") or {}, was.get("template") or {}
    if was.get("suspend") and not status_of(old).get("startTime"):
        template, had = _without_placement(template), _without_placement(had)
    if template != had:
        errors.append(invalid_value("spec.template", spec.get("template"), "field is immutable"))


def _validate_mode(spec: Obj, path: str, errors: Errors) -> None:
    mode = spec.get("completionMode")
    choices = ("NonIndexed", "Indexed")
    validate_optional_choice(mode, choices, f"{path}.completionMode", errors)
    if mode == "Indexed":
        if spec.get("completions") is None:
            why = "when completion mode is Indexed"
            errors.append(required_value(f"{path}.completions", why))
        parallel = spec.get("parallelism") or 0
        if parallel > _MOST_INDEXED:
            why = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
            errors.append(invalid_value(f"{path}.parallelism", parallel, why))
    elif spec.get("backoffLimitPerIndex") is not None:
        why = "requires indexed completion mode"
        value = spec["backoffLimitPerIndex"]
        errors.append(invalid_value(f"{path}.backoffLimitPerIndex", value, why))


def _validate_policies(spec: Obj, path: str, errors: Errors) -> None:
    failure = spec.get("podFailurePolicy")
    if failure is not None:
        rules = failure.get("rules") or []
        if len(rules) > 20:
            errors.append(too_many(f"{path}.podFailurePolicy.rules", len(rules), 20))
        for index, rule in enumerate(rules):
            _validate_failure_rule(rule, f"{path}.podFailurePolicy.rules[{index}]", errors)
    choices = ("Failed", "TerminatingOrFailed")
    replacement = spec.get("podReplacementPolicy")
    validate_optional_choice(replacement, choices, f"{path}.podReplacementPolicy", errors)
    if failure is not None and replacement == "TerminatingOrFailed":
        errors.append(not_supported(f"{path}.podReplacementPolicy", replacement, ("Failed",)))
    success = spec.get("successPolicy")
    if success is not None:
        if spec.get("completionMode") != "Indexed":
            why = "requires indexed completion mode"
            shown = internal_form("SuccessPolicy", success)
            errors.append(invalid_value(f"{path}.successPolicy", shown, why))
        elif not success.get("rules"):
            why = "at least one rules must be specified when the successPolicy is specified"
            errors.append(required_value(f"{path}.successPolicy.rules", why))


def _validate_failure_rule(rule: Obj, path: str, errors: Errors) -> None:
    actions = ("Count", "FailIndex", "FailJob", "Ignore")
    validate_choice(rule.get("action"), actions, f"{path}.action", errors)
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        here = f"{path}.onExitCodes"
        validate_choice(codes.get("operator"), ("In", "NotIn"), f"{here}.operator", errors)
        _validate_codes(codes, here, errors)
    if codes is not None and conditions:
        why = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(_invalid_rule(path, why))
    elif codes is None and not conditions:
        why = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(_invalid_rule(path, why))


def _invalid_rule(path: str, why: str) -> FieldError:
    """Without a value, as upstream, which does not print a rule."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {why}")


def _validate_codes(codes: Obj, path: str, errors: Errors) -> None:
    values = codes.get("values") or []
    if not values:
        errors.append(invalid_value(f"{path}.values", values, "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    for index, code in enumerate(values):
        if code == 0 and codes.get("operator") == "In":
            why = "must not be 0 for the In operator"
            errors.append(invalid_value(f"{path}.values[{index}]", code, why))
        if code in values[:index]:
            errors.append(duplicate(f"{path}.values[{index}]", code))


def _validate_completions(spec: Obj, was: Obj, errors: Errors) -> None:
    """An indexed job may be resized when completions and parallelism go together."""
    now, had = spec.get("completions"), was.get("completions")
    if now == had:
        return
    if spec.get("completionMode") != "Indexed":
        validate_immutable(now, had, "spec.completions", errors)
    elif had is None or now is None or now != spec.get("parallelism"):
        why = "can only be modified in tandem with spec.parallelism"
        errors.append(invalid_value("spec.completions", now, why))


def _without_placement(template: Obj) -> Obj:
    """A suspended job that has not started may still be told where to run."""
    copy: Obj = copy_of(template)
    meta, spec = copy.get("metadata") or {}, copy.get("spec") or {}
    for key in ("labels", "annotations"):
        meta.pop(key, None)
    for key in _PLACEMENT:
        spec.pop(key, None)
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            container.pop("resources", None)
    return {"metadata": meta, "spec": spec}


RULES = Rules(names.dns_subdomain, validate_job, validate_job_update, validate_job_status)

"""Jobs: counts, a template that ends, failure policies; and what may change once it is made.

Job: what must hold of a Job, or of the job that a CronJob makes.
Invariant: a job's pods end: their restart policy is never Always.
"""

from sampan.api import features
from sampan.api.errors import FieldError, invalid_value, not_supported, required_value, too_long
from sampan.api.objects import Obj, copy_of, name_of, spec_of, status_of, uid_of
from sampan.api.rules import names, selectors
from sampan.api.rules.conditions import is_true
from sampan.api.validation.fields import (
    validate_immutable,
    validate_optional_choice,
    validate_prefixed_path,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec.pod_spec import validate_pod_template
from sampan.api.validation.rules import Rules
from sampan.api.validation.selectors import validate_label_selector
from sampan.api.validation.workloads.job_policies import validate_policies
from sampan.api.validation.workloads.job_status import validate_job_status
from sampan.api.validation.workloads.workloads import validate_counts, validate_matches_template

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
_MANY, _MOST_OF_MANY = 100_000, 10_000  # completions with a backoff limit per index
_LONGEST_MANAGER = 63
_PLACEMENT = ("nodeSelector", "tolerations", "schedulingGates")


def validate_job(job: Obj, errors: Errors) -> None:
    spec = spec_of(job)
    selector = spec.get("selector")
    _validate_generated(job, selector, errors)
    _validate_whole_spec(spec, errors)
    _validate_hostname(job, spec, errors)


def _validate_whole_spec(spec: Obj, errors: Errors) -> None:
    """Of a Job, whose selector is there, and not of a template of Jobs."""
    validate_job_spec(spec, "spec", errors)
    selector = spec.get("selector")
    if selector is None:
        errors.append(required_value("spec.selector"))
    else:
        validate_label_selector(selector, "spec.selector", errors)
    validate_matches_template(spec, errors)


def _validate_hostname(job: Obj, spec: Obj, errors: Errors) -> None:
    """Of the pod with the last index: its name has the index behind the Job's."""
    completions = spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed" or completions <= 0:
        return
    hostname = f"{name_of(job)}-{completions - 1}"
    if names.dns_label(hostname):
        why = f"will not able to create pod with invalid DNS label: {hostname}"
        errors.append(invalid_value("metadata.name", name_of(job), why))


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
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        why = "when maxFailedIndexes is specified"
        errors.append(required_value(f"{path}.backoffLimitPerIndex", why))
    _validate_managed_by(spec, path, errors)
    _validate_mode(spec, path, errors)
    validate_policies(spec, path, errors)
    template = spec.get("template") or {}
    validate_pod_template(template, f"{path}.template", errors)
    restart = (template.get("spec") or {}).get("restartPolicy")
    here = f"{path}.template.spec.restartPolicy"
    if restart in ("Always", "", None):
        errors.append(required_value(here, 'valid values: "OnFailure", "Never"'))
    elif restart not in ("OnFailure", "Never"):
        errors.append(not_supported(here, restart, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and restart != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid_value(here, restart or "", why))


def validate_job_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, was = spec_of(new), spec_of(old)
    _validate_whole_spec(spec, errors)
    for key in _IMMUTABLE:
        validate_immutable(spec.get(key), was.get(key), f"spec.{key}", errors)
    _validate_completions(spec, was, errors)
    _validate_template(spec.get("template") or {}, old, errors)


def _validate_template(template: Obj, old: Obj, errors: Errors) -> None:
    """A suspended Job may still be told where to run, and with how much."""
    is_suspended, has_begun = bool(spec_of(old).get("suspend")), status_of(old).get("startTime")
    is_idle = is_suspended and _has_stopped(old)
    is_placeable = is_suspended and not has_begun
    if features.enabled("MutableSchedulingDirectivesForSuspendedJobs"):
        is_placeable = is_idle
    now, had = template, spec_of(old).get("template") or {}
    if is_placeable:
        now, had = _without_placement(now), _without_placement(had)
    if features.enabled("MutablePodResourcesForSuspendedJobs") and is_idle:
        now, had = _without_resources(spec_of(now)), _without_resources(spec_of(had))
        if now != had:
            shown = internal_form("core.PodSpec", template.get("spec"))
            errors.append(invalid_value("spec.template.spec", shown, "field is immutable"))
    elif now != had:
        shown = internal_form("core.PodTemplateSpec", template)
        errors.append(invalid_value("spec.template", shown, "field is immutable"))


def _has_stopped(job: Obj) -> bool:
    """Or has never run."""
    status = status_of(job)
    is_new = features.changed("NewSuspendedJobIsMutable") and not status.get("startTime")
    return not status.get("active") and (is_new or is_true(job, "Suspended"))


def _validate_managed_by(spec: Obj, path: str, errors: Errors) -> None:
    manager = spec.get("managedBy")
    if manager is not None:
        validate_prefixed_path(manager, f"{path}.managedBy", errors)
        if len(manager) > _LONGEST_MANAGER:
            errors.append(too_long(f"{path}.managedBy", _LONGEST_MANAGER))


def _validate_mode(spec: Obj, path: str, errors: Errors) -> None:
    mode = spec.get("completionMode")
    choices = ("NonIndexed", "Indexed")
    validate_optional_choice(mode, choices, f"{path}.completionMode", errors)
    if mode == "Indexed":
        _validate_indexed(spec, path, errors)
    elif mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                why = "requires indexed completion mode"
                errors.append(invalid_value(f"{path}.{key}", spec[key], why))


def _validate_indexed(spec: Obj, path: str, errors: Errors) -> None:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        why = "when completion mode is Indexed"
        errors.append(required_value(f"{path}.completions", why))
    suffix = " when completion mode is Indexed"
    _validate_at_most(spec, "parallelism", _MOST_INDEXED, suffix, path, errors)
    if completions is not None and failed is not None and failed > completions:
        why = "must be less than or equal to completions"
        errors.append(invalid_value(f"{path}.maxFailedIndexes", failed, why))
    _validate_at_most(spec, "maxFailedIndexes", _MOST_INDEXED, "", path, errors)
    if (completions or 0) > _MANY and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            why = f"must be specified when completions is above {_MANY}"
            errors.append(required_value(f"{path}.maxFailedIndexes", why))
        suffix = f" when completions are above {_MANY} and used with backoff limit per index"
        for key in ("parallelism", "maxFailedIndexes"):
            _validate_at_most(spec, key, _MOST_OF_MANY, suffix, path, errors)


def _validate_at_most(
    spec: Obj, key: str, most: int, suffix: str, path: str, errors: Errors
) -> None:
    value = spec.get(key)
    if value is not None and value > most:
        why = f"must be less than or equal to {most}{suffix}"
        errors.append(invalid_value(f"{path}.{key}", value, why))


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
    """What says where its pods run."""
    copy: Obj = copy_of(template)
    meta, spec = copy.get("metadata") or {}, copy.get("spec") or {}
    for key in ("labels", "annotations"):
        meta.pop(key, None)
    for key in _PLACEMENT:
        spec.pop(key, None)
    affinity = spec.pop("affinity", None) or {}
    if others := {key: value for key, value in affinity.items() if key != "nodeAffinity"}:
        spec["affinity"] = others
    return {"metadata": meta, "spec": spec}


def _without_resources(pod_spec: Obj) -> Obj:
    """Those of its containers."""
    found = dict(pod_spec)
    for key in ("containers", "initContainers"):
        if found.get(key):
            found[key] = [
                {name: value for name, value in container.items() if name != "resources"}
                for container in found[key]
            ]
    return found


RULES = Rules(names.dns_subdomain, validate_job, validate_job_update, validate_job_status)

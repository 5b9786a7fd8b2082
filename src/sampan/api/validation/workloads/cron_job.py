"""Cron jobs: a schedule, a policy, and the job to make.

Job: what must hold of a CronJob.
Invariant: the name leaves room for the suffix of the jobs it makes.
"""

from sampan.api.errors import FieldError, invalid_value, not_supported, required_value
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.rules import cron, names
from sampan.api.validation.fields import validate_choice
from sampan.api.validation.rules import Rules
from sampan.api.validation.workloads.job import validate_job_spec
from sampan.api.validation.workloads.workloads import validate_counts

Errors = list[FieldError]
_LONGEST_NAME = 52
_COUNTS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def validate_cron_job(cron_job: Obj, errors: Errors) -> None:
    _validate_spec(cron_job, errors)
    name = name_of(cron_job)
    if len(name) > _LONGEST_NAME:
        why = f"must be no more than {_LONGEST_NAME} characters"
        errors.append(invalid_value("metadata.name", name, why))


def validate_cron_job_update(new: Obj, old: Obj, errors: Errors) -> None:
    _validate_spec(new, errors)


def _validate_spec(cron_job: Obj, errors: Errors) -> None:
    spec = spec_of(cron_job)
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required_value("spec.schedule"))
    else:
        _validate_schedule(schedule, errors)
    validate_counts(spec, "spec", _COUNTS, errors)
    policies = ("Allow", "Forbid", "Replace")
    validate_choice(spec.get("concurrencyPolicy"), policies, "spec.concurrencyPolicy", errors)
    if spec.get("timeZone") is not None:
        _validate_zone(spec["timeZone"], errors)
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    path = "spec.jobTemplate.spec"
    validate_job_spec(template, path, errors)
    if template.get("selector") is not None:
        why = "`selector` will be auto-generated"
        errors.append(invalid_value(f"{path}.selector", template["selector"], why))
    if template.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))


def _validate_schedule(schedule: str, errors: Errors) -> None:
    if "TZ" in schedule:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid_value("spec.schedule", schedule, why))
        return
    try:
        cron.parse(schedule)
    except cron.ScheduleError as wrong:
        errors.append(invalid_value("spec.schedule", schedule, str(wrong)))


def _validate_zone(zone: str, errors: Errors) -> None:
    if not zone:
        why = "timeZone must be nil or non-empty string"
        errors.append(invalid_value("spec.timeZone", zone, why))
    elif zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid_value("spec.timeZone", zone, why))
    elif not _is_zone(zone):
        errors.append(invalid_value("spec.timeZone", zone, f"unknown time zone {zone}"))


def _is_zone(zone: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # few schedules have one

    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


RULES = Rules(names.dns_subdomain, validate_cron_job, validate_cron_job_update)

"""Status of a Job: a Job that is over stays over, and its numbers agree.

Job: what must hold of a status, and of its change.
Invariant: as upstream, a rule about a field is asked only where that field, or what it is compared
    with, has changed: a status that was wrong before does not block its other fields.
"""

from sampan.api.errors import FieldError, duplicate, invalid_value, required_value
from sampan.api.objects import Obj, seconds_of, spec_of, status_of
from sampan.api.rules.conditions import find
from sampan.api.validation.workloads.job_indexes import overlap_of, trouble_of
from sampan.api.validation.workloads.workloads import validate_counts
from sampan.core.fast_dataclass import dataclass

Errors = list[FieldError]
_CONDITIONS = "status.conditions"


@dataclass(frozen=True, slots=True)
class _Ends:
    """What a status says of how the Job ends."""

    complete: bool
    failed: bool
    failing: bool  # FailureTarget
    succeeding: bool  # SuccessCriteriaMet

    @property
    def finished(self) -> bool:
        return self.complete or self.failed


def validate_job_status(new: Obj, old: Obj, errors: Errors) -> None:
    status, was = status_of(new), status_of(old)
    counts = ("active", "succeeded", "failed", "ready", "terminating")
    validate_counts(status, "status", counts, errors)
    _validate_uncounted(status.get("uncountedTerminatedPods") or {}, errors)
    now, before = _ends_of(status), _ends_of(was)
    changed = {key for key in (*status, *was) if status.get(key) != was.get(key)}
    _validate_ends(now, before, bool(spec_of(new).get("successPolicy")), errors)
    _validate_times(status, now, before, changed, errors)
    _validate_finished(status, now, before, changed, errors)
    _validate_indexes(spec_of(new), status, changed, errors)
    ready, active = status.get("ready"), status.get("active") or 0
    if changed & {"ready", "active"} and ready is not None and ready > active:
        errors.append(
            invalid_value("status.ready", ready, "cannot set more ready pods than active")
        )
    _validate_transition(new, old, errors)


def _ends_of(status: Obj) -> _Ends:
    true = {
        condition.get("type")
        for condition in status.get("conditions") or ()
        if condition.get("status") == "True"
    }
    return _Ends(
        "Complete" in true, "Failed" in true, "FailureTarget" in true, "SuccessCriteriaMet" in true
    )


def _validate_uncounted(uncounted: Obj, errors: Errors) -> None:
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(kind) or ()):
            path = f"status.uncountedTerminatedPods.{kind}[{index}]"
            if not uid:
                errors.append(invalid_value(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)


def _validate_ends(now: _Ends, before: _Ends, has_policy: bool, errors: Errors) -> None:
    ended, succeeding = now.complete != before.complete, now.succeeding != before.succeeding
    if now.complete and (ended or now.failed != before.failed):
        _refuse_if(now.failed, "cannot set Complete=True and Failed=true conditions", errors)
    if now.complete and (ended or now.failing != before.failing):
        why = "cannot set Complete=True and FailureTarget=true conditions"
        _refuse_if(now.failing, why, errors)
    if now.failed and (not before.failed or now.failing != before.failing):
        why = "cannot set Failed=True condition without the FailureTarget=true condition"
        _refuse_if(not now.failing, why, errors)
    if now.complete and (ended or succeeding):
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        _refuse_if(not now.succeeding, why, errors)
    if now.complete and has_policy:
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        _refuse_if(not now.succeeding, why, errors)
    if now.succeeding:
        why = "cannot set SuccessCriteriaMet=True and {} conditions"
        _refuse_if(now.failed, why.format("Failed=true"), errors)
        _refuse_if(now.failing, why.format("FailureTarget=true"), errors)


def _refuse_if(is_wrong: bool, why: str, errors: Errors) -> None:
    if is_wrong:
        errors.append(FieldError("FieldValueInvalid", _CONDITIONS, f"Invalid value: {why}"))


def _validate_times(
    status: Obj, now: _Ends, before: _Ends, changed: set[str], errors: Errors
) -> None:
    start, end = status.get("startTime"), status.get("completionTime")
    path = "status.completionTime"
    if now.complete != before.complete or "completionTime" in changed:
        if end and not now.complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid_value(path, end, why))
        if now.complete and not end:
            errors.append(required_value(path, "completionTime is required for Complete jobs"))
    is_early = start and end and seconds_of(end) < seconds_of(start)
    if changed & {"startTime", "completionTime"} and is_early:
        errors.append(invalid_value(path, end, "completionTime cannot be set before startTime"))
    if (now.finished != before.finished or "startTime" in changed) and now.finished and not start:
        errors.append(required_value("status.startTime", "startTime is required for finished job"))


def _validate_finished(
    status: Obj, now: _Ends, before: _Ends, changed: set[str], errors: Errors
) -> None:
    if not now.finished:
        return
    for key in ("active", "terminating"):
        count = status.get(key) or 0
        if count > 0 and (not before.finished or key in changed):
            why = f"{key}>0 is invalid for finished job"
            errors.append(invalid_value(f"status.{key}", count, why))
    key = "uncountedTerminatedPods"
    uncounted = status.get(key) or {}
    listed = {part.capitalize(): uncounted.get(part) for part in ("succeeded", "failed")}
    if any(listed.values()) and (not before.finished or key in changed):
        why = "uncountedTerminatedPods needs to be empty for finished job"
        errors.append(invalid_value(f"status.{key}", listed, why))


def _validate_indexes(spec: Obj, status: Obj, changed: set[str], errors: Errors) -> None:
    done, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    most = spec.get("completions")
    if "completedIndexes" in changed:
        _validate_list("completedIndexes", done, most, errors)
        if done and spec.get("completionMode") != "Indexed":
            why = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.append(invalid_value("status.completedIndexes", done, why))
    if failed is None:
        return
    path, per_index = "status.failedIndexes", spec.get("backoffLimitPerIndex") is not None
    if "failedIndexes" in changed and per_index:
        _validate_list("failedIndexes", failed, most, errors)
    elif "failedIndexes" in changed:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid_value(path, failed, why))
    if changed & {"failedIndexes", "completedIndexes"}:
        both = overlap_of(done, failed, most)
        if both is not None:
            why = f"failedIndexes and completedIndexes overlap at index: {both}"
            errors.append(invalid_value(path, failed, why))


def _validate_list(key: str, text: str, completions: int | None, errors: Errors) -> None:
    trouble = trouble_of(text, completions) if completions is not None else ""
    if trouble:
        errors.append(invalid_value(f"status.{key}", text, f"error parsing {key}: {trouble}"))


def _validate_transition(new: Obj, old: Obj, errors: Errors) -> None:
    now, before = _ends_of(status_of(new)), _ends_of(status_of(old))
    for kind, is_true, was_true in (
        ("Failed", now.failed, before.failed),
        ("Complete", now.complete, before.complete),
        ("FailureTarget", now.failing, before.failing),
    ):
        lost = was_true and not is_true
        _refuse_if(lost, f"cannot disable the terminal {kind}=True condition", errors)
    _validate_progress(new, old, errors)
    lost = before.succeeding and not now.succeeding
    _refuse_if(lost, "cannot disable the SuccessCriteriaMet=True condition", errors)
    late = before.complete and not before.succeeding and now.succeeding
    why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
    _refuse_if(late, why, errors)


def _validate_progress(new: Obj, old: Obj, errors: Errors) -> None:
    """What was counted stays counted, and times stay what they were."""
    status, was, spec = status_of(new), status_of(old), spec_of(new)
    # One whose parallelism follows its completions may be scaled down.
    is_whole = spec.get("completions") == spec.get("parallelism")
    scales = is_whole and spec.get("completionMode") == "Indexed"
    for key in ("failed",) if scales else ("failed", "succeeded"):
        count = status.get(key) or 0
        if count < (was.get(key) or 0):
            why = f"cannot decrease the {key} counter"
            errors.append(invalid_value(f"status.{key}", count, why))
    end, had_end = status.get("completionTime"), was.get("completionTime")
    if end and had_end and end != had_end:
        errors.append(invalid_value("status.completionTime", end, "field is immutable"))
    start = was.get("startTime")
    moved = start and start != status.get("startTime") and not spec.get("suspend")
    if moved and not _is_resuming(status, was):
        why = "startTime cannot be removed for unsuspended job"
        errors.append(required_value("status.startTime", why))


def _is_resuming(status: Obj, was: Obj) -> bool:
    """The time of a Job that goes on begins anew."""
    before, now = (find(item.get("conditions") or (), "Suspended") or {} for item in (was, status))
    return before.get("status") == "True" and now.get("status") == "False"

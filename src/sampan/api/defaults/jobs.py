"""Defaults of jobs and cron jobs.

Job: fill in counts, modes and policies, as upstream does.
Invariant: a job that was not told otherwise runs one pod to completion.
"""

from sampan.api.defaults.fill import fill, part_of, spec_of
from sampan.api.defaults.pod import default_pod_template
from sampan.api.objects import Obj

_MAX_INT32 = 2**31 - 1


def default_job(obj: Obj) -> None:
    spec = spec_of(obj)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    fill(spec, parallelism=1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    fill(spec, backoffLimit=_MAX_INT32 if per_index else 6)
    fill(spec, completionMode="NonIndexed", suspend=False, manualSelector=False)
    if spec.get("podReplacementPolicy") is None:
        has_policy = spec.get("podFailurePolicy") is not None
        spec["podReplacementPolicy"] = "Failed" if has_policy else "TerminatingOrFailed"
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_pod_template(part_of(spec, "template"))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    meta = part_of(obj, "metadata")
    if labels and not meta.get("labels"):
        meta["labels"] = labels  # one map, as in Go: what the template gets later, the job gets too


def default_cron_job(obj: Obj) -> None:
    spec = spec_of(obj)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    job = part_of(part_of(spec, "jobTemplate"), "spec")
    default_pod_template(part_of(job, "template"))

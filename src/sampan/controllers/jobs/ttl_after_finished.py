"""Finished Jobs go when their time to live is over.

Job: decide when. Invariant: only a Job that is Complete or Failed is deleted, with its pods.
"""

from sampan.api.objects import Obj, is_deleted, seconds_of
from sampan.api.resources import JOBS
from sampan.api.rules.conditions import condition_of
from sampan.controllers.actions import NOTHING, Plan, deletion
from sampan.controllers.controller import Controller, View, own_key


def ttl_after_finished_controller() -> Controller:
    return Controller(
        name="ttl-after-finished-controller",
        component="ttl-after-finished-controller",
        aliases=("ttl-after-finished",),
        wakes={JOBS: own_key},
        planned=_plan_key,
    )


def plan(job: Obj, now: float) -> Plan:
    seconds = (job.get("spec") or {}).get("ttlSecondsAfterFinished")
    finished = finished_at(job)
    if seconds is None or finished is None or is_deleted(job):
        return NOTHING
    left = finished + float(seconds) - now
    if left > 0:
        return Plan(again_seconds=left)
    return Plan([deletion(JOBS, job, propagation="Foreground")])


def finished_at(job: Obj) -> float | None:
    for kind in ("Complete", "Failed"):
        condition = condition_of(job, kind)
        if condition is not None and condition.get("status") == "True":
            text = condition.get("lastTransitionTime")
            return seconds_of(text) if text else None
    return None


async def _plan_key(view: View, key: str) -> Plan:
    job = view.cache(JOBS).get(key)
    return NOTHING if job is None else plan(job, view.now)

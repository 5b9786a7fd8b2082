"""Pod failure policy and success policy of a Job: what one failure means, and when it is enough.

Job: a failed pod → the action of the first rule that it matches; completed indexes → success. Pure.
"""

from collections.abc import Iterable
from enum import Enum

from sampan.api.objects import Obj, key_of
from sampan.api.rules import pods as pod_facts
from sampan.controllers.jobs.job_indexes import parse_indexes
from sampan.core.fast_dataclass import dataclass


class Verdict(Enum):
    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    message: str = ""  # for FailJob: what the condition says


def judgement_of(job: Obj, pod: Obj) -> Judgement:
    """What the failure of this pod means; without a policy, or a match, it counts."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        why = _exit_code_match(rule.get("onExitCodes"), pod) or _condition_match(
            rule.get("onPodConditions"), pod
        )
        if why:
            verdict = Verdict(rule.get("action", "Count"))
            message = f"{why} for pod {key_of(pod)} matching {verdict.value} rule at index {number}"
            return Judgement(verdict, message)
    return Judgement(Verdict.COUNT)


def success_rule(job: Obj, succeeded: frozenset[int], completions: int) -> int | None:
    """The index of the first success rule that is fulfilled."""
    policy = job["spec"].get("successPolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        listed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        counted = succeeded
        if listed is not None:
            wanted = parse_indexes(listed, completions)
            counted = succeeded & wanted
            if count is None and counted == wanted:
                return number
        if count is not None and len(counted) >= count:
            return number
    return None


def _exit_code_match(wanted: Obj | None, pod: Obj) -> str:
    if wanted is None:
        return ""
    name = wanted.get("containerName")
    for status in _terminated_statuses(pod):
        code = status["state"]["terminated"].get("exitCode", 0)
        if code == 0 or (name and status.get("name") != name):
            continue
        inside = code in (wanted.get("values") or ())
        if inside == (wanted.get("operator") == "In"):
            return f"Container {status.get('name')} failed with exit code {code}"
    return ""


def _condition_match(wanted: Iterable[Obj] | None, pod: Obj) -> str:
    for item in wanted or ():
        found = pod_facts.condition(pod, item.get("type", ""))
        if found is not None and found.get("status") == (item.get("status") or "True"):
            return f"Pod {key_of(pod)} has condition {item.get('type')}"
    return ""


def _terminated_statuses(pod: Obj) -> Iterable[Obj]:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for item in status.get(field) or ():
            if (item.get("state") or {}).get("terminated"):
                yield item

"""Pod failure policy and success policy of a Job: what one failure means, and when it is enough.

Job: a failed pod → the action of the first rule that it matches; completed indexes → success. Pure.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

from sampan.api.objects import Obj, key_of
from sampan.controllers.jobs.job_indexes import Indexes, parse_indexes
from sampan.core.fast_dataclass import dataclass


class PolicyAction(Enum):
    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, slots=True)
class PolicyMatch:
    action: PolicyAction
    message: str = ""  # for FailJob: what the condition says


COUNTED = PolicyMatch(PolicyAction.COUNT)


def match_failure_policy(job: Obj, pod: Obj) -> PolicyMatch:
    """What the failure of this pod means; without a policy, or a match, it counts."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        if rule.get("onExitCodes") is not None:
            why = _exit_code_match(rule["onExitCodes"], pod)
        else:
            why = _condition_match(rule.get("onPodConditions") or (), pod)
        if why:
            action = PolicyAction(rule.get("action", "Count"))
            return PolicyMatch(action, f"{why} matching {action.value} rule at index {number}")
    return COUNTED


def matched_success_rule(job: Obj, succeeded: Indexes, completions: int) -> int | None:
    """The index of the first success rule that is fulfilled."""
    policy = job["spec"].get("successPolicy") or {}
    if not succeeded:
        return None
    for number, rule in enumerate(policy.get("rules") or ()):
        listed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if listed is None:
            if count is not None and succeeded.total() >= count:
                return number
            continue
        required = parse_indexes(listed, completions)
        shared = required.shared_with(succeeded)
        enough = shared == required.total() or (count is not None and shared >= count)
        if required and enough:
            return number
    return None


def _exit_code_match(wanted: Obj, pod: Obj) -> str:
    name = wanted.get("containerName")
    for status in _terminated_statuses(pod):
        code = status["state"]["terminated"].get("exitCode", 0)
        if code == 0 or (name and status.get("name") != name):
            continue
        inside = code in (wanted.get("values") or ())
        if inside == (wanted.get("operator") == "In"):
            return (
                f"Container {status.get('name')} for pod {key_of(pod)} failed with exit code {code}"
            )
    return ""


def _condition_match(patterns: Sequence[Obj], pod: Obj) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        for pattern in patterns:
            same_status = condition.get("status") == (pattern.get("status") or "True")
            if condition.get("type") == pattern.get("type") and same_status:
                return f"Pod {key_of(pod)} has condition {condition['type']}"
    return ""


def _terminated_statuses(pod: Obj) -> Iterable[Obj]:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for item in status.get(field) or ():
            if (item.get("state") or {}).get("terminated"):
                yield item

"""Jobs of every policy: success, failure, indexes, replacement, suspension, ends."""

from typing import Any

from tests.support.workload_lives.manifests import job, made, pod, service
from tests.support.workload_lives.steps import (
    Life,
    change,
    change_meta,
    change_spec,
    change_status,
    create,
    evict,
    life,
    remove,
    wait,
)

_INDEXED: dict[str, Any] = {"completionMode": "Indexed"}
_RUN, _FAILS = {"life": "run"}, {"life": "fail:1:1"}
_ENDS_WELL = {"life": "run", "stop": "0.3:0"}


def _by_code(action: str, *codes: int, operator: str = "In") -> dict[str, Any]:
    wanted = {"containerName": "c", "operator": operator, "values": list(codes)}
    return {"rules": [{"action": action, "onExitCodes": wanted}]}


def _by_condition(action: str, kind: str = "DisruptionTarget") -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True"}]
    return {"rules": [{"action": action, "onPodConditions": conditions}]}


def _success(**rule: Any) -> dict[str, Any]:
    return {"rules": [rule]}


_COUNTS = {
    "job-parallelism-raised": life(
        create(job(parallelism=1, completions=4, pod=_RUN)), wait(3),
        change_spec("jobs", "j", parallelism=3), wait(4),
    ),
    "job-parallelism-zero": life(
        create(job(parallelism=2, completions=2, pod=_RUN)), wait(3),
        change_spec("jobs", "j", parallelism=0), wait(4),
        change_spec("jobs", "j", parallelism=2), wait(4),
    ),
    "job-born-without-parallelism": life(create(job(parallelism=0, completions=2)), wait(4)),
    "job-no-completions": life(create(job(completions=0)), wait(5)),
    "job-work-queue": life(create(job(parallelism=3)), wait(6)),
    "job-work-queue-one-is-done": life(
        create(job(parallelism=2, pod=_RUN)), wait(3),
        change_status("pods", "k=v#0", phase="Succeeded"), wait(4),
    ),
    "job-more-pods-than-completions": life(create(job(parallelism=5, completions=2)), wait(6)),
    "job-pod-deleted": life(
        create(job(parallelism=2, completions=2, pod=_RUN)), wait(3),
        remove("pods", "k=v#0"), wait(5),
    ),
    "job-pod-deleted-ends-well": life(
        create(job(parallelism=2, completions=2, pod=_ENDS_WELL)), wait(3),
        remove("pods", "k=v#0"), wait(5),
    ),
    "job-pod-deleted-by-force": life(
        create(job(parallelism=2, completions=2, pod=_RUN)), wait(3),
        remove("pods", "k=v#0", gracePeriodSeconds=0), wait(5),
    ),
    "job-finalizer-taken": life(
        create(job(parallelism=1, completions=2, pod=_RUN)), wait(3),
        change_meta("pods", "k=v#0", finalizers=None), wait(3),
        remove("pods", "k=v#0"), wait(4),
    ),
    "job-slow-starts": life(create(job(parallelism=2, completions=2, pod={"life": "late:2"})),
                            wait(7)),
}  # fmt: skip

_ENDS = {
    "job-backs-off": life(create(job(backoffLimit=2, pod=_FAILS)), wait(16)),
    "job-backs-off-parallel": life(
        create(job(backoffLimit=2, parallelism=3, completions=3, pod=_FAILS)), wait(6)
    ),
    "job-restarts-in-place": life(
        create(job(pod={"life": "restart:1:2", "restartPolicy": "OnFailure"})), wait(7)
    ),
    "job-restarts-too-often": life(
        create(job(backoffLimit=1, pod={"life": "restart:1:4", "restartPolicy": "OnFailure"})),
        wait(8),
    ),
    "job-deadline-changed": life(
        create(job(parallelism=1, pod=_RUN)), wait(3),
        change_spec("jobs", "j", activeDeadlineSeconds=1), wait(5),
    ),
    "job-deadline-suspended": life(
        create(job(suspend=True, activeDeadlineSeconds=2, pod=_RUN)), wait(4),
        change_spec("jobs", "j", suspend=False), wait(1),
        change_spec("jobs", "j", suspend=True), wait(5),
    ),
    "job-deadline-after-a-success": life(
        create(job(parallelism=1, completions=3, activeDeadlineSeconds=5, pod={"life": "ok:3"})),
        wait(10),
    ),
    "job-slow-to-stop": life(
        create(job(backoffLimit=0, parallelism=2, completions=2, pod={"life": "run",
        "stop": "3:1"})),
        wait(3), change_status("pods", "k=v#0", phase="Failed"), wait(2), wait(6),
    ),
    "job-ttl-at-once": life(create(job(ttlSecondsAfterFinished=0)), wait(5)),
    "job-ttl-given-later": life(
        create(job()), wait(4), change_spec("jobs", "j", ttlSecondsAfterFinished=0), wait(4)
    ),
    "job-ttl-failed": life(
        create(job(backoffLimit=0, ttlSecondsAfterFinished=2, pod=_FAILS)), wait(8)
    ),
    "job-ttl-guarded": life(
        create(job(ttlSecondsAfterFinished=0, parallelism=1)),
        change_meta("jobs", "j", finalizers=["x.example.com/g"]), wait(5),
        change_meta("jobs", "j", finalizers=None), wait(3),
    ),
    "job-deleted-in-the-background": life(
        create(job(parallelism=2, pod=_RUN)), wait(3),
        remove("jobs", "j", propagationPolicy="Background"), wait(5),
    ),
    "job-deleted-without-a-policy": life(
        create(job(parallelism=2, pod=_RUN)), wait(3), remove("jobs", "j"), wait(5)
    ),
    "job-deleted-orphaning": life(
        create(job(parallelism=2, pod=_RUN)), wait(3),
        remove("jobs", "j", propagationPolicy="Orphan"), wait(5),
    ),
    "job-changed-after-its-end": life(
        create(job(parallelism=1)), wait(5), change_spec("jobs", "j", suspend=True), wait(3),
        change_spec("jobs", "j", parallelism=3), wait(3),
    ),
}  # fmt: skip

_SUSPENSION = {
    "job-suspended-and-resumed": life(
        create(job(parallelism=2, completions=2, pod=_RUN)), wait(3),
        change_spec("jobs", "j", suspend=True), wait(4),
        change_spec("jobs", "j", suspend=False), wait(4),
    ),
    "job-suspended-template-changed": life(
        create(job(suspend=True, pod=_RUN)), wait(2),
        change_spec("jobs", "j", template={"spec": {"nodeSelector": {"zone": "z1"}}}),
        change_spec("jobs", "j", template={"spec": {"tolerations": [{"operator": "Exists"}]}}),
        change_spec("jobs", "j", template={"metadata": {"annotations": {"x": "y"}}}),
        change_spec("jobs", "j", template={"spec": {"schedulingGates": [{"name": "a.b/c"}]}}),
        change_spec("jobs", "j", suspend=False), wait(4),
    ),
    "job-suspended-again-template-changed": life(
        create(job(pod=_RUN)), wait(3), change_spec("jobs", "j", suspend=True), wait(3),
        change_spec("jobs", "j", template={"spec": {"nodeSelector": {"zone": "z1"}}}),
        change_spec("jobs", "j", suspend=False), wait(4),
    ),
    "job-suspended-while-failing": life(
        create(job(parallelism=2, completions=2, backoffLimit=3, pod=_FAILS)), wait(3),
        change_spec("jobs", "j", suspend=True), wait(4),
    ),
    "job-suspended-indexed": life(
        create(job(parallelism=3, completions=3, pod=_ENDS_WELL, **_INDEXED)), wait(3),
        change_spec("jobs", "j", suspend=True), wait(4),
        change_spec("jobs", "j", suspend=False), wait(4),
    ),
    "job-managed-by-another": life(
        create(job(managedBy="x.example.com/c", parallelism=2)), wait(4),
        change_spec("jobs", "j", managedBy=None), wait(2),
    ),
}  # fmt: skip

_POLICIES = {
    "job-ignores-disruption": life(
        create(job(backoffLimit=0, podFailurePolicy=_by_condition("Ignore"), pod=_RUN)), wait(3),
        evict("k=v#0"), wait(6),
    ),
    "job-counts-disruption": life(
        create(job(backoffLimit=0, podFailurePolicy=_by_condition("Count"), pod=_RUN)), wait(3),
        evict("k=v#0"), wait(6),
    ),
    "job-fails-by-condition": life(
        create(job(backoffLimit=3, podFailurePolicy=_by_condition("FailJob"), pod=_RUN)), wait(3),
        evict("k=v#0"), wait(6),
    ),
    "job-counts-codes": life(
        create(job(backoffLimit=1, podFailurePolicy=_by_code("Count", 1), pod=_FAILS)), wait(16)
    ),
    "job-fails-by-other-codes": life(
        create(job(podFailurePolicy=_by_code("FailJob", 2, 3, operator="NotIn"), pod=_FAILS)),
        wait(6),
    ),
    "job-fails-an-index": life(
        create(job(
            parallelism=2, completions=2, backoffLimitPerIndex=2,
            podFailurePolicy=_by_code("FailIndex", 1), pod=_FAILS, **_INDEXED,
        )),
        wait(7),
    ),
    "job-first-rule-counts": life(
        create(job(
            backoffLimit=5, pod={"life": "fail:1:7"},
            podFailurePolicy={"rules": [
                *_by_code("FailJob", 3)["rules"], *_by_code("FailJob", 7)["rules"],
            ]},
        )),
        wait(6),
    ),
    "job-some-indexes-fail": life(
        create(job(
            parallelism=3, completions=3, backoffLimitPerIndex=0, pod=_RUN, **_INDEXED,
        )),
        wait(3), change_status("pods", "k=v#0", phase="Failed"), wait(2),
        change_status("pods", "batch.kubernetes.io/job-completion-index=1", phase="Succeeded"),
        change_status("pods", "batch.kubernetes.io/job-completion-index=2", phase="Succeeded"),
        change_status("pods", "batch.kubernetes.io/job-completion-index=0", phase="Succeeded"),
        wait(5),
    ),
    "job-too-many-indexes-fail": life(
        create(job(
            parallelism=1, completions=4, backoffLimitPerIndex=0, maxFailedIndexes=1, pod=_FAILS,
            **_INDEXED,
        )),
        wait(9),
    ),
    "job-an-index-backs-off": life(
        create(job(
            parallelism=1, completions=1, backoffLimitPerIndex=1, pod=_FAILS, **_INDEXED,
        )),
        wait(16),
    ),
    "job-an-index-ignores": life(
        create(job(
            parallelism=1, completions=1, backoffLimitPerIndex=1, pod=_RUN,
            podFailurePolicy=_by_condition("Ignore"), **_INDEXED,
        )),
        wait(3), evict("k=v#0"), wait(14),
    ),
    "job-succeeds-by-indexes": life(
        create(job(
            parallelism=3, completions=3, successPolicy=_success(succeededIndexes="0,2"),
            pod=_RUN, **_INDEXED,
        )),
        wait(3),
        change_status("pods", "batch.kubernetes.io/job-completion-index=0", phase="Succeeded"),
        wait(2),
        change_status("pods", "batch.kubernetes.io/job-completion-index=2", phase="Succeeded"),
        wait(5),
    ),
    "job-succeeds-by-some-of-indexes": life(
        create(job(
            parallelism=4, completions=4, pod=_RUN,
            successPolicy=_success(succeededIndexes="1-3", succeededCount=1), **_INDEXED,
        )),
        wait(3),
        change_status("pods", "batch.kubernetes.io/job-completion-index=2", phase="Succeeded"),
        wait(5),
    ),
    "job-succeeds-after-a-failure": life(
        create(job(
            parallelism=2, completions=2, backoffLimitPerIndex=0, pod=_RUN,
            successPolicy=_success(succeededCount=1), **_INDEXED,
        )),
        wait(3),
        change_status("pods", "batch.kubernetes.io/job-completion-index=0", phase="Failed"),
        wait(2),
        change_status("pods", "batch.kubernetes.io/job-completion-index=1", phase="Succeeded"),
        wait(5),
    ),
    "job-replaced-only-when-gone": life(
        create(job(
            podReplacementPolicy="Failed", parallelism=2, completions=2,
            pod={"life": "run", "stop": "3:1"},
        )),
        wait(3), remove("pods", "k=v#0"), wait(2), wait(5),
    ),
    "job-replaced-at-once": life(
        create(job(
            podReplacementPolicy="TerminatingOrFailed", parallelism=2, completions=2,
            pod={"life": "run", "stop": "4:1"},
        )),
        wait(3), remove("pods", "k=v#0"), wait(2),
    ),
    "job-suspended-terminating": life(
        create(job(parallelism=2, completions=2, pod={"life": "run", "stop": "4:1"})), wait(3),
        change_spec("jobs", "j", suspend=True), wait(2),
    ),
}  # fmt: skip

_INDEXES = {
    "job-indexed-grows": life(
        create(job(parallelism=2, completions=2, pod=_RUN, **_INDEXED)), wait(3),
        change_spec("jobs", "j", parallelism=4, completions=4), wait(4),
    ),
    "job-indexed-completions-alone": life(
        create(job(parallelism=2, completions=2, pod=_RUN, **_INDEXED)), wait(3),
        change_spec("jobs", "j", completions=4), wait(3),
    ),
    "job-indexed-evicted": life(
        create(job(parallelism=2, completions=2, pod=_RUN, **_INDEXED)), wait(3),
        evict("k=v#0"), wait(5),
    ),
    "job-indexed-failing-pod-comes-again": life(
        create(job(parallelism=1, completions=2, pod=_FAILS, backoffLimit=6, **_INDEXED)), wait(4)
    ),
    "job-indexed-one-at-a-time": life(
        create(job(parallelism=1, completions=3, **_INDEXED)), wait(9)
    ),
    "job-indexed-with-a-service": life(
        create(service("j", clusterIP="None", selector={"k": "v"})),
        create(job(parallelism=2, completions=2, pod={"life": "run", "subdomain": "j"},
        **_INDEXED)),
        wait(5),
    ),
    "job-indexed-hostname": life(
        create(job(parallelism=1, completions=1, pod={"life": "run", "hostname": "h"}, **_INDEXED)),
        wait(4),
    ),
}  # fmt: skip

_SELECTORS = {
    "job-selector-by-hand": life(
        create(job(
            manualSelector=True, selector={"matchLabels": {"k": "v"}}, parallelism=1, pod=_RUN,
        )),
        wait(4),
    ),
    "job-adopts": life(
        create(pod("x", labels={"k": "v"})), wait(2),
        create(job(
            manualSelector=True, selector={"matchLabels": {"k": "v"}}, parallelism=1,
            completions=2, pod=_RUN,
        )),
        wait(5),
    ),
    "job-releases": life(
        create(job(parallelism=1, pod=_RUN)), wait(3),
        change_meta("pods", "k=v#0", labels={"batch.kubernetes.io/controller-uid": "x"}), wait(5),
    ),
    "job-quota": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "2"}})), wait(2),
        create(job(parallelism=4, completions=4, pod=_RUN)), wait(5),
    ),
    "job-quota-then-room": life(
        create(made("v1", "ResourceQuota", "q", {"hard": {"pods": "1"}})), wait(2),
        create(job(parallelism=2, completions=2, pod=_RUN)), wait(4),
        change("resourcequotas", "q", spec={"hard": {"pods": "5"}}), wait(14),
    ),
    "job-without-its-account": life(
        create(job(parallelism=1, pod={"serviceAccountName": "nobody", "life": "run"})), wait(5)
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {
    **_COUNTS, **_ENDS, **_SUSPENSION, **_POLICIES, **_INDEXES, **_SELECTORS,
}  # fmt: skip

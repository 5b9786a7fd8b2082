"""Forty-seven lives: each workload once in its usual ways."""

from typing import Any

from tests.support.workload_lives.manifests import (
    budget,
    claim_template,
    cron_job,
    daemon_set,
    deployment,
    image,
    job,
    pod,
    replication_controller,
    service,
    stateful_set,
)
from tests.support.workload_lives.steps import (
    Life,
    change_spec,
    create,
    evict,
    life,
    remove,
    taint,
    wait,
)

_INDEXED: dict[str, Any] = {"completionMode": "Indexed"}
_RUN = {"life": "run"}
_POLICY = {"rules": [{
    "action": "FailJob",
    "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]},
}]}  # fmt: skip
_SPREAD = [{
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["pod-template-hash"],
}]  # fmt: skip
_TWO_TAINTS = [
    {"key": "a1", "operator": "Exists"},
    {"key": "a2", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
]
_A1, _A2 = {"key": "a1", "effect": "NoExecute"}, {"key": "a2", "effect": "NoExecute"}
_DELETED = {"whenDeleted": "Delete", "whenScaled": "Delete"}

_JOBS = {
    "job-ok": life(create(job(completions=3, parallelism=2)), wait(7)),
    "job-fails": life(create(job(backoffLimit=0, pod={"life": "fail:1:3"})), wait(5)),
    "job-suspended-while-running": life(
        create(job(parallelism=3, completions=3, backoffLimit=1, pod=_RUN)),
        wait(3), change_spec("jobs", "j", suspend=True), wait(5),
    ),
    "job-parallelism-lowered": life(
        create(job(parallelism=3, completions=3, pod={"life": "run", "stop": "0.3:0"})),
        wait(3), change_spec("jobs", "j", parallelism=1), wait(4),
    ),
    "job-indexed": life(create(job(parallelism=3, completions=3, **_INDEXED)), wait(6)),
    "job-indexed-scaled-down": life(
        create(job(parallelism=5, completions=5, backoffLimit=1, pod=_RUN, **_INDEXED)),
        wait(3), change_spec("jobs", "j", parallelism=2, completions=2), wait(5),
    ),
    "job-indexed-pod-deleted-ends-0": life(
        create(job(parallelism=2, completions=2, pod={"life": "run", "stop": "0.3:0"}, **_INDEXED)),
        wait(3), remove("pods", "k=v#0"), wait(5),
    ),
    "job-pod-evicted": life(
        create(job(parallelism=2, completions=2, pod={"life": "run", "stop": "0.3:0"})),
        wait(3), evict("k=v#0"), wait(5),
    ),
    "job-success-policy": life(
        create(job(
            parallelism=3, completions=3, successPolicy={"rules": [{"succeededCount": 1}]},
            pod={"life": "ok:2", "stop": "0.3:0"}, **_INDEXED,
        )),
        wait(8),
    ),
    "job-failure-policy-fail": life(
        create(job(backoffLimit=3, podFailurePolicy=_POLICY, pod={"life": "fail:1:42"})), wait(6)
    ),
    "job-per-index": life(
        create(job(
            parallelism=2, completions=2, backoffLimitPerIndex=0, maxFailedIndexes=5,
            pod={"life": "fail:1:1"}, **_INDEXED,
        )),
        wait(7),
    ),
    "job-deadline": life(create(job(activeDeadlineSeconds=3, parallelism=2, pod=_RUN)), wait(8)),
    "job-replacement-failed-after": life(
        create(job(podReplacementPolicy="Failed", pod={"life": "run", "stop": "2:143"})),
        wait(2), remove("pods", "k=v#0"), wait(8),
    ),
    "job-deleted-foreground": life(
        create(job(parallelism=2, pod=_RUN)),
        wait(2), remove("jobs", "j", propagationPolicy="Foreground"), wait(5),
    ),
    "job-ttl": life(create(job(ttlSecondsAfterFinished=2)), wait(8)),
    "job-suspended-from-start": life(
        create(job(suspend=True)), wait(2), change_spec("jobs", "j", suspend=False), wait(6)
    ),
    "pod-never-scheduled-deleted": life(
        create(job(
            podReplacementPolicy="Failed", pod={"life": "run", "nodeSelector": {"zone": "none"}}
        )),
        wait(2), remove("pods", "k=v#0"), wait(4),
    ),
    "cron-suspended": life(create(cron_job(suspend=True)), wait(3)),
    "cron-runs": life(create(cron_job(successfulJobsHistoryLimit=1)), wait(66)),
}  # fmt: skip

_REPLICAS = {
    "deploy-rolls": life(
        create(deployment()), wait(4), change_spec("deployments", "d", **image("y")), wait(8)
    ),
    "deploy-recreate": life(
        create(deployment(strategy={"type": "Recreate"})),
        wait(4), change_spec("deployments", "d", **image("y")), wait(8),
    ),
    "deploy-stuck": life(
        create(deployment(replicas=2, progressDeadlineSeconds=4, pod={"life": "notready"})), wait(9)
    ),
    "deploy-paused": life(
        create(deployment()), wait(4), change_spec("deployments", "d", paused=True),
        change_spec("deployments", "d", **image("y")), wait(2),
        change_spec("deployments", "d", replicas=5), wait(4),
    ),
    "deploy-rolled-back": life(
        create(deployment(replicas=2)), wait(3), change_spec("deployments", "d", **image("y")),
        wait(5), change_spec("deployments", "d", **image("x")), wait(6),
    ),
    "deploy-min-ready": life(create(deployment(replicas=2, minReadySeconds=3)), wait(2), wait(5)),
    "deploy-pod-deleted": life(
        create(deployment(replicas=2)), wait(3), remove("pods", "a=b#0"), wait(4)
    ),
    "deploy-orphaned-and-adopted": life(
        create(deployment(replicas=2)), wait(3),
        remove("deployments", "d", propagationPolicy="Orphan"), wait(3),
        create(deployment(replicas=2)), wait(4),
    ),
    "rc-plain": life(
        create(replication_controller()), wait(3),
        change_spec("replicationcontrollers", "r", replicas=1), wait(3),
    ),
}  # fmt: skip

_SETS = {
    "sts-rolls": life(
        create(stateful_set()), wait(6), change_spec("statefulsets", "s", **image("y")), wait(10)
    ),
    "sts-parallel": life(
        create(stateful_set(podManagementPolicy="Parallel")), wait(4),
        change_spec("statefulsets", "s", replicas=1), wait(5),
    ),
    "sts-orphaned-and-back": life(
        create(stateful_set(replicas=2)), wait(5),
        remove("statefulsets", "s", propagationPolicy="Orphan"), wait(3),
        create(stateful_set(replicas=3)), wait(6),
    ),
    "sts-claims": life(
        create(stateful_set(
            replicas=2, persistentVolumeClaimRetentionPolicy=_DELETED,
            volumeClaimTemplates=[claim_template()],
        )),
        wait(5),
    ),
    "sts-failed-pod": life(create(stateful_set(replicas=2, pod={"life": "fail:1:1"})), wait(6)),
    "sts-scaled-down-foreground": life(
        create(stateful_set(replicas=2)), wait(4),
        remove("statefulsets", "s", propagationPolicy="Foreground"), wait(6),
    ),
    "ds-plain": life(
        create(daemon_set()), wait(4), change_spec("daemonsets", "m", **image("y")), wait(9)
    ),
    "ds-on-delete": life(
        create(daemon_set(updateStrategy={"type": "OnDelete"})), wait(4),
        change_spec("daemonsets", "m", **image("y")), wait(3), remove("pods", "a=b#0"), wait(4),
    ),
    "ds-orphaned-and-back": life(
        create(daemon_set()), wait(4), remove("daemonsets", "m", propagationPolicy="Orphan"),
        wait(3), create(daemon_set()), wait(5),
    ),
    "ds-selector": life(create(daemon_set(pod={"nodeSelector": {"zone": "z1"}})), wait(4)),
    "ds-tainted-node": life(
        create(daemon_set()), wait(4),
        taint("n1", {"key": "dedicated", "value": "x", "effect": "NoSchedule"}), wait(2),
        change_spec("daemonsets", "m", **image("y")), wait(9), taint("n1"), wait(3),
    ),
}  # fmt: skip

_SCHEDULING = {
    "ds-evicted-by-taint": life(
        create(deployment()), wait(4),
        taint("n2", {"key": "k", "value": "x", "effect": "NoExecute"}), wait(6),
        taint("n2"), wait(2),
    ),
    "taint-twice": life(
        create(deployment(replicas=1, pod={"nodeName": "n1", "tolerations": _TWO_TAINTS})),
        wait(3), taint("n1", _A1), wait(3), taint("n1", _A1, _A2), wait(5), taint("n1"), wait(2),
    ),
    "pdb-min": life(
        create(deployment()), create(budget(minAvailable=2)), wait(5),
        evict("a=b#0"), wait(0.2), evict("a=b#1"), wait(4),
    ),
    "pdb-bare-pods": life(
        create(pod("x")), create(budget(maxUnavailable=1)), wait(4), evict("a=b#0"), wait(3)
    ),
    "unschedulable": life(create(deployment(replicas=1, pod={"cpu": "100"})), wait(4)),
    "spread": life(
        create(deployment(replicas=6, pod={"topologySpreadConstraints": _SPREAD})), wait(5)
    ),
    "gated": life(
        create(pod("g", schedulingGates=[{"name": "x.example.com/g"}])), wait(2),
        change_spec("pods", "g", schedulingGates=[]), wait(3),
    ),
    "service-slices": life(
        create(service()), create(deployment()), wait(4),
        change_spec("deployments", "d", replicas=1), wait(3),
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_JOBS, **_REPLICAS, **_SETS, **_SCHEDULING}

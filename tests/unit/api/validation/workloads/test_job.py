"""What may change of a Job: where the pods of one that never ran go, and nothing else of them."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.objects import copy_of
from sampan.api.validation.workloads.job import validate_job_update
from sampan.api.validation.workloads.job_status import validate_job_status

TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
NODES = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
PODS = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


def job(*, started=False, suspend=True, **pod):
    container = {
        "name": "c",
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "restartPolicy": "Never",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        **pod,
    }
    return {
        "metadata": {"name": "work", "namespace": "ns", "uid": "u"},
        "spec": {
            "suspend": suspend,
            "selector": {"matchLabels": {"job": "work"}},
            "template": {"metadata": {"labels": {"job": "work"}}, "spec": spec},
        },
        "status": {"startTime": "2026-01-01T00:00:00Z"} if started else {},
    }


def complaints(new, old):
    errors = []
    validate_job_update(new, old, errors)
    return [error.field for error in errors]


def with_resources(obj):
    changed = copy_of(obj)
    container = changed["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}}
    return changed


def test_a_suspended_job_that_never_ran_may_be_sent_elsewhere():
    for pod in (
        {"nodeSelector": {"zone": "a"}},
        {"affinity": {"nodeAffinity": NODES}},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
    ):
        assert complaints(job(**pod), job()) == []
        assert complaints(job(), job(**pod)) == []
        assert complaints(job(**pod, started=True), job(started=True)) == ["spec.template"]
        assert complaints(job(**pod), job(suspend=False)) == ["spec.template"]


def test_from_v1_36_on_a_job_that_has_stopped_may_be_sent_elsewhere_and_with_other_resources():
    """[V1] as an original v1.36 answers; v1.35 with both gates wants the controller's word"""
    stopped = job(started=True)
    stopped["status"]["conditions"] = [{"type": "Suspended", "status": "True"}]
    stopping = copy_of(stopped)
    stopping["status"]["active"] = 1
    elsewhere = job(nodeSelector={"zone": "a"})
    otherwise = job(hostNetwork=True)
    with features.used(Release("1.36")):
        for new in (elsewhere, with_resources(job()), with_resources(elsewhere)):
            assert complaints(new, stopped) == complaints(new, job()) == []
            assert complaints(new, stopping) == ["spec.template"]
            assert complaints(new, job(started=True)) == ["spec.template"]
            assert complaints(new, job(suspend=False)) == ["spec.template"]
        assert complaints(otherwise, stopped) == ["spec.template.spec"]
    gates = ("MutablePodResourcesForSuspendedJobs", "MutableSchedulingDirectivesForSuspendedJobs")
    with features.used(Release("1.35", gates=dict.fromkeys(gates, True))):
        assert complaints(with_resources(elsewhere), stopped) == []
        assert complaints(elsewhere, job()) == ["spec.template"]


@pytest.mark.kubernetes("1.35")
def test_its_pods_stay_what_they_are():
    assert complaints(with_resources(job()), job()) == ["spec.template"]
    both = {"nodeAffinity": NODES, "podAffinity": PODS}
    assert complaints(job(affinity=both), job()) == ["spec.template"]
    assert complaints(job(affinity={"podAffinity": PODS}), job(affinity=both)) == []


def test_the_time_of_a_job_begins_anew_when_it_goes_on_and_stays_otherwise():
    def status(start, suspended):
        conditions = [{"type": "Suspended", "status": suspended}]
        return {"startTime": start, "conditions": conditions}

    def status_complaints(now, before):
        errors = []
        old, new = job(suspend=False), job(suspend=False)
        validate_job_status({**new, "status": now}, {**old, "status": before}, errors)
        return [error.field for error in errors]

    first, second = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
    assert status_complaints(status(second, "False"), status(first, "True")) == []
    assert status_complaints(status(second, "False"), status(first, "False")) == [
        "status.startTime"
    ]

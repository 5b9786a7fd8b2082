"""Defaults of jobs."""

from sampan.api.defaults.jobs import generate_selector


def test_a_job_is_tied_to_its_pods_by_its_uid():
    job = {"metadata": {"name": "j", "uid": "u1"}, "spec": {}}
    generate_selector(job)
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "controller-uid": "u1",
        "job-name": "j",
        "batch.kubernetes.io/controller-uid": "u1",
        "batch.kubernetes.io/job-name": "j",
    }


def test_a_selector_that_was_chosen_is_kept():
    job = {"metadata": {"uid": "u1"}, "spec": {"manualSelector": True}}
    generate_selector(job)
    assert job["spec"] == {"manualSelector": True}

"""Tasks › Run Jobs, walked on real containers."""

import json

import pytest

from tests.e2e.tasks.objects import BUSYBOX, container, job, template

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page
JOBS = "tasks/job"


def completed(reader, name, condition="complete"):
    reader("wait", f"--for=condition={condition}", f"job/{name}", "--timeout=90s", seconds=100)


def pods_of(reader, name):
    return reader.pods(f"batch.kubernetes.io/job-name={name}")


@page(f"{JOBS}/automated-tasks-with-cron-jobs")
def test_a_cron_job_and_a_job_made_from_it(reader):
    reader(
        "create",
        "cronjob",
        "hello",
        f"--image={BUSYBOX}",
        "--schedule=*/1 * * * *",
        "--",
        "echo",
        "Hello",
    )
    assert "*/1 * * * *" in reader("get", "cronjob", "hello")
    reader("create", "job", "now", "--from=cronjob/hello")
    completed(reader, "now")
    [found] = pods_of(reader, "now")
    assert reader.logs(found["metadata"]["name"]) == "Hello\n"
    reader("delete", "cronjob", "hello")
    reader.sees(lambda: not reader.get("jobs")["items"])


@page(f"{JOBS}/parallel-processing-expansion")
def test_jobs_from_a_template(reader):
    for item in ("apple", "banana", "cherry"):
        found = job(f"process-item-{item}", "echo", "Processing item", item)
        found["metadata"]["labels"] = {"jobgroup": "jobexample"}
        reader.create(found)
    reader(
        "wait",
        "--for=condition=complete",
        "jobs",
        "-l",
        "jobgroup=jobexample",
        "--timeout=90s",
        seconds=100,
    )
    assert len(reader.get("jobs", "-l", "jobgroup=jobexample")["items"]) == 3
    reader("delete", "job", "-l", "jobgroup=jobexample")


@page(f"{JOBS}/indexed-parallel-processing-static")
def test_an_indexed_job_knows_its_index(reader):
    script = "items='foo bar baz qux xyz'; set -- $items; shift $JOB_COMPLETION_INDEX; echo $1"
    pods = template("indexed", "sh", "-c", script, image=BUSYBOX, restartPolicy="Never")
    reader.create(
        job("indexed-job", pods=pods, completions=5, parallelism=3, completionMode="Indexed")
    )
    completed(reader, "indexed-job")
    shown = {
        found["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]:
        reader.logs(found["metadata"]["name"]).strip()
        for found in pods_of(reader, "indexed-job")
    }  # fmt: skip
    assert shown == dict(zip("01234", ("foo", "bar", "baz", "qux", "xyz"), strict=True))
    assert reader.field("job indexed-job", ".status.completedIndexes") == "0-4"


@page(f"{JOBS}/coarse-parallel-processing-work-queue")
@page(f"{JOBS}/fine-parallel-processing-work-queue")
def test_a_work_queue(reader):
    """The queue is a directory on a claim instead of a message broker; each worker takes items."""
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "queue"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }  # fmt: skip
    reader.create(claim)
    volumes = [{"name": "queue", "persistentVolumeClaim": {"claimName": "queue"}}]
    mount = {"volumeMounts": [{"name": "queue", "mountPath": "/queue"}]}
    script = "for i in apple banana cherry date fig grape; do mkdir -p /queue/todo/$i; done"
    reader.run_pod(
        "fill", "sh", "-c", script, until="Succeeded", restartPolicy="Never", volumes=volumes,
        container_fields=mount,
    )  # fmt: skip
    take = "rmdir /queue/todo/$i 2>/dev/null && echo Working on $i"
    work = f"for i in $(ls /queue/todo); do {take}; done; true"
    worker = container("main", "sh", "-c", work, **mount)
    pods = template("wq", containers=[worker], restartPolicy="OnFailure", volumes=volumes)
    reader.create(job("job-wq-2", pods=pods, parallelism=2))
    completed(reader, "job-wq-2")
    said = [reader.logs(found["metadata"]["name"]) for found in pods_of(reader, "job-wq-2")]
    lines = sorted("".join(said).splitlines())
    assert lines == [
        f"Working on {name}" for name in ("apple", "banana", "cherry", "date", "fig", "grape")
    ]


@page(f"{JOBS}/pod-failure-policy")
def test_a_failure_policy_fails_the_job_at_once_or_ignores(reader):
    rules = [
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]},
        }
    ]
    pods = template("failjob", "sh", "-c", "exit 42", image=BUSYBOX, restartPolicy="Never")
    spec = {
        "completions": 8,
        "parallelism": 2,
        "backoffLimit": 6,
        "podFailurePolicy": {"rules": rules},
    }
    reader.create(job("job-pod-failure-policy-failjob", pods=pods, **spec))
    completed(reader, "job-pod-failure-policy-failjob", "failed")
    reason = '.status.conditions[?(@.type=="Failed")].reason'
    assert reader.field("job job-pod-failure-policy-failjob", reason) == "PodFailurePolicy"
    limited = template(
        "per-index",
        "sh",
        "-c",
        "exit $((JOB_COMPLETION_INDEX == 1))",
        image=BUSYBOX,
        restartPolicy="Never",
    )
    spec = {
        "completions": 3,
        "parallelism": 3,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 0,
    }
    reader.create(job("job-per-index", pods=limited, **spec))
    completed(reader, "job-per-index", "failed")
    assert reader.field("job job-per-index", ".status.failedIndexes") == "1"
    assert reader.field("job job-per-index", ".status.completedIndexes") == "0,2"


@page(f"{JOBS}/job-with-pod-to-pod-communication")
def test_pods_of_a_job_have_host_names(reader):
    headless = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "headless-svc"},
        "spec": {"clusterIP": "None", "selector": {"job-name": "example-job"}},
    }  # fmt: skip
    pods = template(
        "pair", "hostname", image=BUSYBOX, restartPolicy="Never", subdomain="headless-svc"
    )
    reader.create(
        headless,
        job("example-job", pods=pods, completions=3, parallelism=3, completionMode="Indexed"),
    )
    completed(reader, "example-job")
    said = sorted(
        reader.logs(found["metadata"]["name"]).strip() for found in pods_of(reader, "example-job")
    )
    assert said == ["example-job-0", "example-job-1", "example-job-2"]


@page("concepts/workloads/controllers/ttlafterfinished")
def test_a_finished_job_goes_by_itself(reader):
    reader.create(job("pi-with-ttl", "true", ttlSecondsAfterFinished=1))
    reader.sees(lambda: not reader.get("jobs")["items"], 60)


@page("concepts/workloads/controllers/job")
def test_a_suspended_job_starts_when_it_is_resumed(reader):
    reader.create(job("myjob", "true", suspend=True))
    suspended = '.status.conditions[?(@.type=="Suspended")].status'
    reader.sees(lambda: reader.field("job myjob", suspended) == "True")
    assert pods_of(reader, "myjob") == []
    reader(
        "patch",
        "job/myjob",
        "--type=strategic",
        "--patch",
        json.dumps({"spec": {"suspend": False}}),
    )
    completed(reader, "myjob")

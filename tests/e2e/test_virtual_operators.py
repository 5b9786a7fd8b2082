"""Operators in processes of their own, beside a cluster on virtual time: it waits for them."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import kubernetes.client
import kubernetes.config
import kubernetes.watch
import pytest

from sampan.testing import cluster
from sampan.testing.kit.expectations import NotAsExpected
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = pytest.mark.slow

PATIENCE = "2m"  # for operators on a machine that has much else to do

# A kopf operator: its own batching makes it a tenth of a second slow.
PORTER = """
import kopf
import kubernetes

@kopf.on.create("batch", "v1", "jobs")
def note(name, namespace, **_):
    kubernetes.config.load_kube_config()
    wanted = {"metadata": {"name": name}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, wanted)
"""
CRONJOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup}
spec:
  schedule: "30 */6 * * *"
  successfulJobsHistoryLimit: 10
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: backup}]}}}
"""
MARK = {"labels": {"boat": ""}}


@pytest.fixture
def porter(tmp_path):
    path = tmp_path / "porter.py"
    path.write_text(PORTER)
    return [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--quiet", str(path)]


def boat(name):
    meta = {"name": name, **MARK}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def painting(path: str) -> None:
    """Watches config maps, thinks for a while, and paints them."""
    kubernetes.config.load_kube_config(path)
    api = kubernetes.client.CoreV1Api()
    watch = kubernetes.watch.Watch()
    for event in watch.stream(api.list_config_map_for_all_namespaces, label_selector="boat"):
        found = event["object"].metadata
        if event["type"] == "ADDED":
            time.sleep(0.1)
            api.patch_namespaced_config_map(
                found.name, found.namespace, {"data": {"colour": "red"}}
            )


def polling(path: str) -> None:
    """As painting; but it asks every twentieth of a second."""
    kubernetes.config.load_kube_config(path)
    api = kubernetes.client.CoreV1Api()
    while True:
        for found in api.list_namespaced_config_map("default", label_selector="boat").items:
            if not found.data:
                api.patch_namespaced_config_map(
                    found.metadata.name, "default", {"data": {"colour": "red"}}
                )
        time.sleep(0.05)


def created(obj):
    return obj["metadata"]["creationTimestamp"]


def test_a_day_passes_only_as_fast_as_the_operator_follows(porter):
    with cluster(clock="virtual", patience=PATIENCE) as c, c.operator(porter) as operator:
        c.apply(CRONJOB)
        c.clock.advance("24h")
        jobs = {job["metadata"]["name"]: created(job) for job in c.list("jobs")}
        noted = {
            each["metadata"]["name"]: created(each)
            for each in c.list("configmaps")
            if each["metadata"]["name"].startswith("backup")
        }
        assert len(jobs) == 4
        assert noted == jobs, "each in the moment in which the job came"
        assert any(line.startswith("kopf/") for line in c.clock.waited())
        operator.check()


def test_an_operator_that_is_only_starting_is_waited_for(porter):
    """As a fixture that knows nothing of the kit starts it."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
                                       "containers": [{"name": "c", "image": "c"}]}}},
    }  # fmt: skip
    with cluster(clock="virtual", patience=PATIENCE) as c:
        environ = environment() | {"KUBECONFIG": str(c.kubeconfig)}
        process = subprocess.Popen(porter, env=environ)
        try:
            c.apply(job)
            before = c.clock.now()
            c.wait_for("configmap/once", timeout="1m")
            assert c.clock.now() - before < 10, "it was waited for by another clock"
        finally:
            process.terminate()
            process.wait()


@pytest.mark.parametrize("work", [painting, polling])
def test_what_an_operator_does_happens_in_the_moment_of_its_cause(work):
    with (
        cluster(clock="virtual", patience=PATIENCE) as c,
        c.operator(work, watches=work is painting),
    ):
        for number in range(3):
            c.apply(boat(f"boat-{number}"))
            c.clock.advance("1h")
            found = c.get(f"configmap/boat-{number}")
            assert found.get("data") == {"colour": "red"}
            times = {entry["time"] for entry in found["metadata"]["managedFields"]}
            assert times == {created(found)}


def test_one_that_is_expected_and_does_not_come_is_named():
    with cluster(clock="virtual", patience=PATIENCE) as c:
        c.apply(boat("a"))
        c.clock.expect("my-operator", within="1s")
        with pytest.raises(NotAsExpected, match="expected that my-operator watches"):
            c.clock.advance("1h")
        c.clock.advance("1h")


def test_an_operator_that_ends_is_told_with_its_last_words():
    command = [sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"]
    with (
        cluster() as c,
        pytest.raises(NotAsExpected, match=r"it ended with 3:\n  no such thing"),
        c.operator(command),
    ):
        raise AssertionError("it never watched")


def test_an_operator_on_real_time_runs_inside_of_the_with():
    with cluster() as c:
        with c.operator(painting) as operator:
            c.apply(boat("a"))
            c.wait_for("configmap/a", lambda found: found.get("data") == {"colour": "red"})
        with pytest.raises(ProcessLookupError):
            os.kill(operator.pid, 0)


def test_an_operator_ends_with_a_test_that_is_killed(tmp_path):
    pids = tmp_path / "pids"
    program = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        from sampan.testing import cluster

        SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
        with cluster() as c:
            from sampan.testing.kit.operator_process import OperatorProcess
            output = open({str(tmp_path / "out")!r}, "w+b")
            operator = OperatorProcess(SLEEPS, str(c.kubeconfig), output, c.control)
            Path({str(pids)!r}).write_text(str(operator.pid))
            time.sleep(600)
    """)
    with subprocess.Popen([sys.executable, "-c", program], env=environment()) as test:
        eventually(lambda: pids.exists() and bool(pids.read_text()), seconds=60)
        test.kill()
        eventually(lambda: _ended(int(pids.read_text())), seconds=20)


def _ended(pid):
    """A zombie, too: its parent is gone, and whoever has it now may not have looked."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in ("Z", "X")


@pytest.mark.kubectl
def test_the_clock_of_a_cluster_by_command(tmp_path, porter):
    sampan = SampanProcess(tmp_path, "--clock", "virtual").up()
    try:
        clock = sampan_command("clock")
        environ = environment() | {"KUBECONFIG": str(sampan.kubeconfig)}

        def run(*words):
            done = subprocess.run(
                [*clock, *words], env=environ, capture_output=True, text=True, check=False
            )
            return done.returncode, (done.stdout or done.stderr).splitlines()

        code, [before] = run()
        assert code == 0
        with subprocess.Popen(porter, env=environ) as operator:
            sampan.kubectl("apply", "-f", "-", stdin=CRONJOB)
            code, lines = run("advance", "24h", "--settle", "--client", "kopf", "--patience", "30s")
            operator.terminate()
        assert code == 0, lines
        assert lines[0] == before.replace("-01T", "-02T")
        assert any("for kopf/" in line for line in lines[1:]), lines
        names = sampan.kubectl("get", "configmaps", "-o", "name").split()
        assert len([name for name in names if "backup" in name]) == 4
        code, [line] = run("advance", "1h", "--client", "nobody", "--patience", "1s")
        assert code == 1
        assert "nobody called nobody has come to watch" in line
    finally:
        assert sampan.stop() == 0

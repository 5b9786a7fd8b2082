"""`sampan lab`: a stream of pods, virtual time, two schedulers side by side."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from sampan.testing import cluster
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
NODES = """
apiVersion: simulated.sampan.dev/v1
kind: Nodes
types:
- {name: large, count: 2, capacity: {cpu: 8, memory: 32Gi}, zones: [a, b]}
- {name: small, count: 2, capacity: {cpu: 2, memory: 8Gi}}
"""
WORKLOAD = """
apiVersion: simulated.sampan.dev/v1
kind: Workload
seed: 7
objects:
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: shop}}
streams:
- name: batch
  count: 12
  poisson: 20s
  duration: {uniform: [10m, 20m]}
  requests: {cpu: 2}
  kind: Job
- name: web
  count: 2
  start: 6m
  every: 30s
  duration: 5m
  requests: {cpu: 4}
  priorityClassName: high
  namespace: shop
- {name: huge, requests: {cpu: 200}}
"""
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def lab(*words, code=0, where=None):
    done = subprocess.run(
        [*sampan_command("lab", *map(str, words))], capture_output=True, text=True, timeout=200,
        env=environment(), stdin=subprocess.DEVNULL, cwd=where,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("lab")
    texts = {"nodes.yaml": NODES, "workload.yaml": WORKLOAD, "packed.yaml": PACKED}
    for name, text in texts.items():
        (root / name).write_text(text)
    return root


def test_two_schedulers_side_by_side_and_the_same_history_each_time(files):
    words = ["run", files / "workload.yaml", "--nodes-file", files / "nodes.yaml", "-o", "json"]
    spread, packed = json.loads(lab(*words, "--compare", files / "packed.yaml"))
    for report in (spread, packed):
        totals = report["totals"]
        assert totals["pods"] - totals["preempted"] == 15, "who was preempted came back"
        assert (totals["succeeded"], totals["pending"], totals["refused"]) == (14, 1, 0)
        assert totals["preempted"] == len(report["preemptions"]) > 0
        assert all(each["by"].startswith("web-") for each in report["preemptions"])
        [pending] = report["pending"]
        assert "Insufficient cpu" in pending["why"]
        assert 0 < report["utilisation"]["cpu"] < report["peak"]["cpu"] <= 1
        assert "NodeResourcesFit" in {cost["plugin"] for cost in report["plugins"]}
        assert sum(node["pods"] for node in report["nodes"]) == totals["pods"] - 1
    where = [[each["node"] for each in report["placements"]] for report in (spread, packed)]
    assert where[0] != where[1], "another scoring puts pods elsewhere"
    again = json.loads(lab(*words))
    assert {**again, "plugins": 0} == {**spread, "plugins": 0}


def test_what_the_page_shows_runs(tmp_path):
    """docs/lab.md: its files, its first command."""
    page = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.S)
    for name, text in zip(("nodes.yaml", "workload.yaml", "packed.yaml"), blocks, strict=True):
        (tmp_path / name).write_text(text)
    [command, _] = re.search(r"```sh\n(.*?)```", page, re.S)[1].splitlines()
    words = command.removeprefix("sampan lab ").split()
    text = lab(*words, where=tmp_path)
    reports = text.split("=== ")[1:]
    assert len([each for each in reports if " 61 succeeded" in each]) == 2, text
    assert "large-5" in text
    assert "small-0" in text


def test_a_mistake_is_said_with_its_place(files, tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(WORKLOAD.replace("poisson", "poison"))
    said = lab("run", wrong, "--nodes-file", files / "nodes.yaml", code=1)
    assert "streams[0].poison: unknown field" in said


def test_what_a_live_cluster_does_is_recorded_and_runs_in_the_lab(tmp_path):
    with cluster(nodes=2) as c:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c", "image": "i",
                            "resources": {"requests": {"cpu": "3"}}}]}}  # fmt: skip
        c.apply(pod)
        c.assert_ready("pod/p")
        lab("record", "--kubeconfig", c.kubeconfig, "--to", tmp_path / "recorded")
    page = lab("run", tmp_path / "recorded" / "workload.yaml", "--nodes-file",
               tmp_path / "recorded" / "nodes.yaml", "-o", "html")  # fmt: skip
    assert page.startswith("<!doctype html>")
    assert "1 pods: 1 running" in page

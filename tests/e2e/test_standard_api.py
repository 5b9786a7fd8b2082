"""Processes of their own ask an API server for nothing but Kubernetes' own API [W6]."""

import json
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.parts.machines import machines
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: elsewhere}]
"""
# What these processes do; the cluster's own do the rest.
CONTROLLERS = ("deployment", "replicaset", "endpointslice")
STANDARD = ("/api/", "/apis/", "/version", "/healthz", "/livez", "/readyz")
# A server that does not know it loses nothing but traces.
WELCOME = {"/sampan/v1/spans"}


@pytest.fixture
def world():
    root = Path(tempfile.mkdtemp(prefix="sampan-std-"))
    (root / "policy.yaml").write_text(POLICY)
    (root / "scheduler.yaml").write_text(SCHEDULER)
    with machines(1) as [machine]:
        left = ",".join(["*", *(f"-{name}" for name in CONTROLLERS)])
        flags = ("--runtime", "none", "--controllers", left,
                 "--audit-policy-file", str(root / "policy.yaml"),
                 "--audit-log-path", str(root / "audit.log"))  # fmt: skip
        cluster = SampanProcess(root, *flags, where=machine.where).up()
        try:
            yield cluster, machine, root
        finally:
            cluster.stop()
            cluster.reset()
    shutil.rmtree(root)


def test_separate_processes_need_no_path_of_ours(world):
    cluster, machine, root = world
    kubectl, known = cluster.kubectl, ("--kubeconfig", str(cluster.kubeconfig))
    verbs = {
        "scheduler": (*known, "--config", str(root / "scheduler.yaml"), "--secure-port", "0"),
        "controllers": (*known, "--controllers", ",".join(CONTROLLERS), "--secure-port", "0",
                        "--leader-elect", "false"),
        "kubelet": ("--join", str(cluster.data_dir), "--data-dir", str(root / "node"),
                    "--node-name", "n1", "--runtime", "simulated"),
        "service-proxy": (*known, "--node-name", "n1"),
    }  # fmt: skip
    with ExitStack() as running:
        for verb, flags in verbs.items():
            command = [*machine.where, *sampan_command(verb), *flags]
            program = Program(command, root / f"{verb}.out", environment())
            running.callback(program.stop, 60)
        deployment = json.loads(
            kubectl("create", "deployment", "web", "--image=app:1", "--replicas=2",
                    "--port=80", "--dry-run=client", "-o", "json")
        )  # fmt: skip
        deployment["spec"]["template"]["spec"]["schedulerName"] = "elsewhere"
        kubectl("apply", "-f", "-", stdin=json.dumps(deployment))
        kubectl("expose", "deployment", "web")
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        address = kubectl.get("service", "web")["spec"]["clusterIP"]
        eventually(lambda: address in machine.run("nft", "list", "ruleset"), 60)
    asked = {}
    for line in (root / "audit.log").read_text().splitlines():
        event = json.loads(line)
        agent = (event.get("userAgent") or "").partition("/")[0]
        if agent.startswith("sampan-"):
            asked.setdefault(agent, set()).add(event["requestURI"].partition("?")[0])
    parts = {"sampan-kube-scheduler", "sampan-kube-controller-manager", "sampan-kubelet",
             "sampan-proxy"}  # fmt: skip
    assert parts <= set(asked)
    strange = {path for paths in asked.values() for path in paths if not path.startswith(STANDARD)}
    assert strange <= WELCOME

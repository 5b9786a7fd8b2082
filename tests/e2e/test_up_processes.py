"""`sampan up --processes`: every part a process of its own, one cluster. [F21]"""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from sampan.client.kubeconfig import load
from sampan.core.http.client import HttpClient
from sampan.core.tls import client_context
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import RUNTIME, SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PARTS = ["apiserver", "scheduler", "controllers", "nodes"]


def parts_of(process):
    """By name: pid, and how often it was started again."""
    return json.loads((process.data_dir / "processes.json").read_text())


def is_alive(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def ready_replicas(kubectl, name="web"):
    return kubectl.get("deployment", name).get("status", {}).get("readyReplicas", 0)


def kill_part(process, part):
    """As `kill -9`; returns when another is ready in its place."""
    before = parts_of(process)[part]["pid"]
    os.kill(before, signal.SIGKILL)

    def replaced():
        now = parts_of(process).get(part)
        return now is not None and now["pid"] != before and is_alive(now["pid"])

    eventually(replaced)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """In a directory whose sockets have paths that are too long for an address."""
    root = tmp_path_factory.mktemp("a-directory-with-a-name-that-is-rather-long" * 2)
    ingress = ("--ingress", "--ingress-ports", "0,0")
    process = SampanProcess(root, "--processes", "--runtime", "simulated", "--nodes", "3", *ingress)
    try:
        yield process.up(seconds=60.0)
        process.stop()
    finally:
        process.reset()


def test_an_ingress_is_served_by_the_part_of_the_controllers(simulated):
    kubectl = simulated.kubectl
    kubectl("create", "service", "clusterip", "shop", "--tcp=80:80")
    kubectl("create", "ingress", "shop", "--rule=shop.localhost/*=shop:80")
    kubectl(
        "wait", "--for=jsonpath={.status.loadBalancer.ingress}", "ingress/shop", "--timeout=50s"
    )
    [served] = kubectl.get("ingress", "shop")["status"]["loadBalancer"]["ingress"]
    assert served["hostname"] == "localhost"

    def answered(host):
        link = http.client.HTTPConnection("127.0.0.1", served["ports"][0]["port"], timeout=60)
        link.request("GET", "/", headers={"Host": host})
        answer = link.getresponse()
        text = answer.read().decode()
        link.close()
        return answer.status, text

    eventually(lambda: answered("shop.localhost")[0] == 503)
    assert "has no ready endpoint" in answered("shop.localhost")[1]
    assert answered("other.localhost")[0] == 404
    kubectl("delete", "ingress/shop", "service/shop")


def test_the_usual_story(simulated):
    kubectl = simulated.kubectl
    kubectl("create", "deployment", "web", "--image=registry.example/app:1", "--replicas=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("scale", "deployment/web", "--replicas=5")
    eventually(lambda: ready_replicas(kubectl) == 5)
    pod = kubectl("get", "pods", "-o", "name").split()[0]
    assert kubectl("logs", pod) is not None
    name = pod.removeprefix("pod/")
    command = [*sampan_command("why", pod), "--kubeconfig", str(simulated.kubeconfig)]
    why = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    assert "Decided at" in why.stdout, "what the scheduler's process remembers"

    def steps():
        traced = kubectl("get", "--raw", f"/sampan/v1/trace/pods/default/{name}")
        return {span["lane"] for span in json.loads(traced)["traces"][0]["spans"]}

    eventually(lambda: {"scheduler", "kubelet"} <= steps())


def test_status_names_the_processes(simulated):
    lines = simulated.run("status").splitlines()
    weighed = [line.split()[2] for line in lines if line.startswith("memory of ")]
    assert sorted(weighed) == sorted(f"{part}:" for part in PARTS)
    told = [line.split()[1] for line in lines if line.startswith("processes:")]
    assert sorted(told) == sorted(PARTS)
    pids = {entry["pid"] for entry in parts_of(simulated).values()}
    assert len(pids | {simulated.pid}) == 5
    assert all(is_alive(pid) for pid in pids)


def test_scheduler_and_controllers_have_metrics_for_who_may_read_them(simulated):
    """Where they are is said at the start; who shows no certificate gets no more than health."""
    output = simulated.output.read_text()
    admin = load(str(simulated.kubeconfig), {}, "/").connection()
    for part, metric in (("scheduler", "scheduler_pending_pods"), ("controllers", "workqueue_")):
        address = re.search(rf"{part} +metrics at https://127.0.0.1:(\d+)", output)
        assert address is not None, output
        port = int(address[1])
        assert asked(port, "/healthz") == (200, "ok")
        assert asked(port, "/metrics")[0] == 403
        code, text = asked(port, "/metrics", admin)
        assert code == 200
        assert metric in text


def asked(port, path, admin=None):
    """By the administrator's certificate, or by nobody."""
    pair = None if admin is None else (admin.certificate, admin.key)
    context = client_context(verify=False, pair_data=pair)

    async def ask():
        http = HttpClient(ssl_context=context)
        answer = await http.request("GET", f"https://127.0.0.1:{port}{path}", timeout_seconds=60.0)
        await http.close()
        return answer.status, answer.body.decode()

    return asyncio.run(ask())


def test_nobody_else_may_open_the_sockets_and_the_api_asks_who_it_is(simulated):
    directory = simulated.data_dir / "sockets"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes == {0o600}
    here = os.open(directory, os.O_PATH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(30)
        sock.connect(f"/proc/self/fd/{here}/apiserver.sock")
        sock.sendall(
            b"GET /api/v1/nodes HTTP/1.1\r\nhost: x\r\n"
            b"x-remote-user: system:kube-controller-manager\r\n\r\n"
        )
        assert b" 401 " in sock.recv(4096).splitlines()[0]
    os.close(here)


@pytest.mark.parametrize("part", PARTS)
def test_kill_9_of_a_process_heals(simulated, part):
    kubectl = simulated.kubectl
    name = f"after-{part}"
    kubectl("create", "deployment", name, "--image=registry.example/app:1", "--replicas=2")
    kill_part(simulated, part)
    eventually(lambda: ready_replicas(kubectl, name) == 2)
    assert all(is_alive(entry["pid"]) for entry in parts_of(simulated).values())


def test_after_a_stop_nothing_is_left_and_a_start_finds_everything(simulated):
    kubectl = simulated.kubectl
    before = sorted(kubectl("get", "deployments", "-o", "name").split())
    pids = [entry["pid"] for entry in parts_of(simulated).values()]
    assert simulated.stop() == 0
    assert not any(is_alive(pid) for pid in pids)
    simulated.up(seconds=60.0)
    assert sorted(kubectl("get", "deployments", "-o", "name").split()) == before
    for name in before:
        eventually(lambda name=name: ready_replicas(kubectl, name.partition("/")[2]) >= 2)


def test_kill_9_of_the_parent_ends_them_all(simulated):
    pids = [entry["pid"] for entry in parts_of(simulated).values()]
    simulated.kill()
    eventually(lambda: not any(is_alive(pid) for pid in pids))
    simulated.up(seconds=60.0)
    assert "node-0" in simulated.kubectl("get", "nodes", "-o", "name")


@pytest.mark.containerd
def test_containers_of_a_real_node_outlive_its_process(workspace, archive):
    process = SampanProcess(workspace / "processes", "--processes", "--runtime", RUNTIME)
    try:
        kubectl = process.up(seconds=90.0).kubectl
        process.run("image", "import", str(archive))
        image = "--image=localhost/test/busybox:1"
        kubectl("run", "talks", image, "--command", "--", "sh", "-c", "echo hello; sleep 3600")
        kubectl("wait", "--for=condition=Ready", "pod/talks", "--timeout=60s")
        assert kubectl("logs", "talks") == "hello\n"

        def container():
            [status] = kubectl.get("pod", "talks")["status"]["containerStatuses"]
            return status["containerID"], status["restartCount"]

        before = container()
        kill_part(process, "nodes")
        kill_part(process, "apiserver")
        assert eventually(lambda: kubectl("exec", "talks", "--", "echo", "again")) == "again\n"
        assert container() == before
        kubectl("delete", "pod", "talks", "--grace-period=0", "--force")
        assert process.stop() == 0
    finally:
        process.reset()
    assert process.leftovers() == {}

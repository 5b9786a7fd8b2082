"""How real containers end, with kubectl as the witness [N11]."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"


def container(name, command, **words):
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", command], **words}


def create(kubectl, name, *containers, **spec):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers), **spec},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(pod))


def took(kubectl, name, *flags):
    began = time.monotonic()
    kubectl("delete", "pod", name, *flags)
    return time.monotonic() - began


def messages(kubectl, name, reason):
    found = kubectl.get("events", f"--field-selector=involvedObject.name={name},reason={reason}")
    return [one["message"] for one in found["items"]]


def test_a_container_that_ignores_the_signal_is_killed_after_its_grace(kubectl):
    loop = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"
    create(kubectl, "stubborn", container("main", loop), terminationGracePeriodSeconds=2)
    kubectl.wait_phase("stubborn", "Running")
    eventually(lambda: "deaf" in kubectl("logs", "stubborn"))
    assert took(kubectl, "stubborn") > 1.9


def test_a_pre_stop_hook_that_hangs_takes_no_more_than_the_grace(kubectl):
    hook = {"preStop": {"exec": {"command": ["sleep", "600"]}}}
    loop = "trap exit TERM; while :; do sleep 0.1; done"
    create(kubectl, "hangs", container("main", loop, lifecycle=hook),
           terminationGracePeriodSeconds=1)  # fmt: skip
    kubectl.wait_phase("hangs", "Running")
    assert took(kubectl, "hangs") > 0.9
    eventually(lambda: "PreStopHook failed" in messages(kubectl, "hangs", "FailedPreStopHook"))


def test_a_container_gets_the_stop_signal_that_it_names(kubectl, tmp_path):
    loop = "trap 'echo got it; exit' USR1; trap '' TERM; echo up; while :; do sleep 0.1; done"
    create(kubectl, "named", container("main", loop, lifecycle={"stopSignal": "SIGUSR1"}),
           terminationGracePeriodSeconds=600, os={"name": "linux"})  # fmt: skip
    eventually(lambda: kubectl.phase("named") == "Running" and "up" in kubectl("logs", "named"))
    shown = kubectl.background("logs", "-f", "named", output=tmp_path / "log")
    took(kubectl, "named")
    shown.wait(60)
    assert "got it" in (tmp_path / "log").read_text()


def test_a_hook_over_tcp_fails_as_it_does_upstream(kubectl):
    hook = {"postStart": {"tcpSocket": {"port": 1}}}
    loop = "trap exit TERM; while :; do sleep 0.1; done"
    create(kubectl, "tcp-hook", container("main", loop, lifecycle=hook),
           terminationGracePeriodSeconds=1)  # fmt: skip
    eventually(lambda: messages(kubectl, "tcp-hook", "FailedPostStartHook"))
    took(kubectl, "tcp-hook", "--grace-period=0", "--force")


def test_sidecars_end_after_the_containers_that_they_serve_in_reverse_order(kubectl, tmp_path):
    """Each writes its end into a file of the node; the last one reads them."""
    say = (
        "trap 'sleep 0.3; echo {0} >>/shared/ends; exit' TERM; echo ready; "
        "while :; do sleep 0.05; done"
    )
    mount = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    sidecars = [
        container(name, say.format(name), restartPolicy="Always", **mount)
        for name in ("first", "second")
    ]
    volume = {"name": "shared", "hostPath": {"path": str(tmp_path), "type": "Directory"}}
    create(kubectl, "ordered", container("main", say.format("main"), **mount),
           initContainers=sidecars, volumes=[volume], terminationGracePeriodSeconds=10)  # fmt: skip
    kubectl.wait_phase("ordered", "Running")
    for name in ("first", "second", "main"):
        eventually(lambda name=name: "ready" in kubectl("logs", "ordered", "-c", name))
    took(kubectl, "ordered")
    assert (tmp_path / "ends").read_text().split() == ["main", "second", "first"]


class Listener(BaseHTTPRequestHandler):
    """Answers every hook with a failure, which is an answer."""

    def do_GET(self):
        self.server.heard.append((self.path, self.headers["user-agent"], self.headers["x-who"]))
        self.send_response(500)
        self.end_headers()

    def log_message(self, *words):
        pass


@pytest.fixture
def listener():
    server = HTTPServer(("127.0.0.1", 0), Listener)
    server.heard = []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_hooks_run_commands_ask_servers_and_sleep(kubectl, listener):
    loop = "trap exit TERM; while :; do sleep 0.1; done"
    get = {"host": "127.0.0.1", "port": listener.server_port,
           "httpHeaders": [{"name": "X-Who", "value": "hook"}]}  # fmt: skip
    asks = {"postStart": {"httpGet": {**get, "path": "/hello"}},
            "preStop": {"httpGet": {**get, "path": "/bye"}}}  # fmt: skip
    sleeps = {"postStart": {"exec": {"command": ["touch", "/started"]}},
              "preStop": {"sleep": {"seconds": 2}}}  # fmt: skip
    fails = {"postStart": {"exec": {"command": ["false"]}}}
    grace = {"terminationGracePeriodSeconds": 600}
    create(kubectl, "asks", container("main", loop, lifecycle=asks), **grace)
    create(kubectl, "sleeps", container("main", loop, lifecycle=sleeps), **grace)
    ended = container("main", loop.replace("exit", "'exit 3'"), lifecycle=fails)
    create(kubectl, "fails", ended, restartPolicy="Never",
           **grace)  # fmt: skip
    for name in ("asks", "sleeps"):
        kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=50s")
    kubectl("exec", "sleeps", "--", "ls", "/started")
    kubectl.wait_phase("fails", "Failed")
    eventually(lambda: "PostStartHook failed" in messages(kubectl, "fails", "FailedPostStartHook"))
    eventually(lambda: "FailedPostStartHook" in messages(kubectl, "fails", "Killing"))
    assert took(kubectl, "sleeps") > 1.9
    took(kubectl, "asks")
    agent = listener.heard[0][1]
    assert agent.startswith("kube-lifecycle/1.")
    assert listener.heard == [("/hello", agent, "hook"), ("/bye", agent, "hook")]
    kubectl("delete", "pod", "fails", "--now")

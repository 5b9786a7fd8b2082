"""The same script twice: with the real kubectl, and with sampan in its place.

Exit codes are the same, and so is what is printed, after ages, addresses and random names are
masked. What only runs on a real node is checked for sampan alone below.
"""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from sampan import testing
from tests.support.parts.processes import eventually

MANIFESTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: twin}}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: twin, labels: {app: twin}}
spec:
  replicas: 0
  selector: {matchLabels: {app: twin}}
  template:
    metadata: {labels: {app: twin}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: "localhost/test/busybox:1", command: [sleep, "3600"]}]
"""
SCRIPT = (
    ("create", "namespace", "{ns}"),
    ("apply", "-n", "{ns}", "-f", "{file}"),
    ("apply", "-n", "{ns}", "-f", "{file}"),
    ("get", "deploy,cm", "-n", "{ns}", "-l", "app=twin"),
    ("get", "deploy", "twin", "-n", "{ns}", "-o", "jsonpath={{.spec.replicas}}"),
    ("scale", "deploy/twin", "-n", "{ns}", "--replicas=1"),
    ("rollout", "status", "deploy/twin", "-n", "{ns}", "--timeout=60s"),
    ("set", "env", "deploy/twin", "-n", "{ns}", "A=1"),
    ("rollout", "status", "deploy/twin", "-n", "{ns}", "--timeout=60s", "--watch=true"),
    ("label", "cm", "settings", "-n", "{ns}", "x=y"),
    ("annotate", "cm", "settings", "-n", "{ns}", "note=hi"),
    ("patch", "cm", "settings", "-n", "{ns}", "--type=merge", "-p", '{{"data":{{"b":"2"}}}}'),
    ("get", "cm", "settings", "-n", "{ns}", "-o", "yaml"),
    ("expose", "deploy", "twin", "-n", "{ns}", "--port=80"),
    (
        "get",
        "svc",
        "twin",
        "-n",
        "{ns}",
        "-o",
        "custom-columns=N:.metadata.name,P:.spec.ports[0].port",
    ),
    ("exec", "deploy/twin", "-n", "{ns}", "--", "sh", "-c", "echo $A; exit 5"),
    ("logs", "deploy/twin", "-n", "{ns}"),
    ("get", "pods", "nope", "-n", "{ns}"),
    ("get", "nope"),
    ("auth", "can-i", "get", "pods"),
    ("delete", "-n", "{ns}", "-f", "{file}"),
    ("get", "cm", "settings", "-n", "{ns}"),
    ("delete", "namespace", "{ns}"),
)
# Progress, what depends on the moment, and texts that changed since 1.32.
PROGRESS = ("rollout", "exec", "auth", "logs")
MASKS = (
    (r"twin-(a|b)\b", "NS"),
    (r"\btwin-[0-9a-z]{5,10}(-[0-9a-z]{5})?\b", "POD"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID"),
    (r'resourceVersion: "\d+"', "resourceVersion: N"),
    (r"\b\d+(s|m|m\d+s)\b", "AGE"),
    # sampan applies server-side: it leaves no annotation behind.
    (r"\n *kubectl.kubernetes.io/last-applied-configuration: \|\n.*", ""),
    (r" from NS namespace", ""),  # kubectl says so since 1.33
    (r" +", " "),
)  # fmt: skip


def ran(program, arguments, env):
    done = subprocess.run(
        [*program, *arguments], env=env, capture_output=True, text=True, timeout=120
    )
    text = done.stdout + "|" + done.stderr
    for pattern, by in MASKS:
        text = re.sub(pattern, by, text)
    return done.returncode, text


@pytest.fixture
def env(cluster):
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.root / "home")}


def test_a_script_ends_the_same_with_kubectl_and_with_sampan(env, tmp_path):
    """[C6]"""
    file = tmp_path / "twin.yaml"
    file.write_text(MANIFESTS)
    programs = {"twin-a": ["kubectl"], "twin-b": [sys.executable, "-m", "sampan"]}
    told = {}
    for namespace, program in programs.items():
        told[namespace] = [
            ran(program, [word.format(ns=namespace, file=file) for word in words], env)
            for words in SCRIPT
        ]
    for words, theirs, ours in zip(SCRIPT, told["twin-a"], told["twin-b"], strict=True):
        assert ours[0] == theirs[0], (words, theirs, ours)
        if words[0] not in PROGRESS:
            assert ours[1] == theirs[1], words


def test_streams_of_a_real_container(env, tmp_path):
    """run, wait, logs, exec with input and exit code, cp both ways, run --rm."""
    sampan = [sys.executable, "-m", "sampan"]
    image = "--image=localhost/test/busybox:1"

    def do(*words, code=0, stdin=None):
        done = subprocess.run(
            [*sampan, *words], env=env, capture_output=True, text=True, input=stdin, timeout=120
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    do("run", "streams", image, "--command", "--", "sh", "-c", "mkdir /tmp; echo hi; sleep 3600")
    try:
        do("wait", "pod/streams", "--for=condition=Ready", "--timeout=60s")
        assert do("logs", "streams") == "hi\n"
        assert do("exec", "-i", "streams", "--", "cat", stdin="in\n") == "in\n"
        do("exec", "streams", "--", "sh", "-c", "exit 7", code=7)
        (tmp_path / "there").write_text("copied\n")
        do("cp", str(tmp_path / "there"), "streams:/tmp/there")
        do("cp", "streams:/tmp/there", str(tmp_path / "back"))
        assert Path(tmp_path / "back").read_text() == "copied\n"
        do("exec", "streams", "--", "httpd", "-p", "8080", "-h", "/tmp")
        assert forwarded([*sampan, "port-forward", "pod/streams", ":8080"], env) == b"copied\n"
        do("debug", "streams", image, "-c", "beside", "--attach=false", "--", "sleep", "3600")
        path = "{.status.ephemeralContainerStatuses[0].state}"
        state = ("get", "pod", "streams", "-o", f"jsonpath={path}")
        eventually(lambda: "running" in do(*state))
        eventually(lambda: "streams" in ran_text([*sampan, "top", "pod", "streams"], env))
        once = ("--restart=Never", "--rm", "-i", "--command", "--", "sh", "-c")
        asks = "read word; echo $word; exit 4"
        assert "said\n" in do("run", "once", image, *once, asks, code=4, stdin="said\n")
        # Over before anybody attaches: the exit code is told all the same.
        do("run", "over", image, *once, "exit 5", code=5)
    finally:
        do("delete", "pod", "streams", "--now")


def ran_text(command, env):
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60).stdout


def forwarded(command, env):
    """What a pod's web server says at the port that the command opened here."""
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as forwarding:
        try:
            line = forwarding.stdout.readline()
            port = line.removeprefix("Forwarding from 127.0.0.1:").split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/there", timeout=60) as answer:
                return answer.read()
        finally:
            forwarding.terminate()


def test_a_drained_node_is_left_by_its_pods_and_takes_new_ones_again():
    with testing.cluster(nodes=2) as c:
        sampan = [sys.executable, "-m", "sampan", "--kubeconfig", c.kubeconfig]

        def do(*words):
            done = subprocess.run([*sampan, *words], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        do("create", "deployment", "web", "--image=i", "--replicas=4")
        c.assert_ready("deploy/web")
        assert "node/node-0 drained" in do("drain", "node-0", "--ignore-daemonsets")
        c.assert_ready("deploy/web")
        nodes = ("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}")
        assert set(do(*nodes).split()) == {"node-1"}
        do("uncordon", "node-0")
        do("scale", "deploy/web", "--replicas=12")
        c.assert_ready("deploy/web")
        assert set(do(*nodes).split()) == {"node-0", "node-1"}


@pytest.mark.timeout(180)
def test_who_watches_sees_what_comes_after_the_list():
    """As names: first the list, then each object that is new or has changed, and none twice."""
    with testing.cluster(nodes=0) as c:
        sampan = [sys.executable, "-m", "sampan", "--kubeconfig", c.kubeconfig]

        def do(*words):
            subprocess.run([*sampan, *words], check=True, capture_output=True, timeout=120)

        def watching(*words):
            command = [*sampan, "get", "configmaps", "-n", "default", *words]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        do("create", "configmap", "first", "-n", "default")
        own = ("--field-selector", "metadata.name!=kube-root-ca.crt")
        with watching("-w", "-o", "name", *own) as names, watching("-w", *own) as rows:
            try:
                assert names.stdout.readline() == "configmap/first\n"
                assert rows.stdout.readline().split() == ["NAME", "DATA", "AGE"]
                assert rows.stdout.readline().split()[0] == "first"
                do("create", "configmap", "second", "-n", "default")
                do("annotate", "configmap", "first", "a=b", "-n", "default")
                for name in ("second", "first"):
                    assert names.stdout.readline() == f"configmap/{name}\n"
                    assert rows.stdout.readline().split()[0] == name
            finally:
                names.terminate()
                rows.terminate()


def test_a_file_that_says_detach_starts_one_cluster_in_the_background(tmp_path):
    """The process in the background reads the same file, and must not start another."""
    data = tmp_path / "dev"
    config = tmp_path / "cluster.yaml"
    shared = tmp_path / "config"
    config.write_text(
        f"dataDir: {data}\nport: 0\nruntime: simulated\ndetach: true\nkubeconfig: {shared}\n"
    )
    sampan = [sys.executable, "-m", "sampan"]

    def do(*words):
        return subprocess.run([*sampan, *words], capture_output=True, text=True, timeout=60)

    try:
        started = do("up", "--config", str(config))
        assert started.returncode == 0, started.stderr
        assert "in the background" in started.stdout
        assert do("status", "--data-dir", str(data)).returncode == 0
        assert "sampan-dev" in shared.read_text()
    finally:
        assert do("reset", "--yes", "--data-dir", str(data)).returncode == 0
    assert "sampan-dev" not in shared.read_text()

"""From `kubectl run` to a running container and back, with all real parts [C6, A7, S6, N7-N12]."""

import os
import pty
import re
import subprocess
import time

import pytest

from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
FOREVER = ("sh", "-c", "trap exit TERM; echo started; while :; do sleep 0.2; done")


def run(kubectl, name, *command, image=IMAGE, flags=()):
    kubectl("run", name, f"--image={image}", *flags, "--command", "--", *command)


def gone(kubectl, name):
    eventually(lambda: not kubectl.exists("pod", name))


def test_a_pod_from_the_registry_runs_is_seen_and_goes(kubectl, registry_image, tmp_path):
    """[C6] run, get -w, describe, logs, delete"""
    watch = kubectl.background("get", "pods", "-w", output=tmp_path / "watch")
    run(kubectl, "web", *FOREVER, image=registry_image)
    kubectl.wait_phase("web", "Running")
    pod = kubectl.get("pod", "web")
    assert pod["status"]["podIP"]
    assert pod["status"]["containerStatuses"][0]["ready"] is True
    reasons = ("Scheduled", "Pulling", "Pulled", "Created", "Started")
    eventually(lambda: all(map(kubectl("describe", "pod", "web").__contains__, reasons)))
    eventually(lambda: kubectl("logs", "web") == "started\n")
    kubectl("delete", "pod", "web")
    gone(kubectl, "web")
    watch.terminate()
    watch.wait()
    lines = (tmp_path / "watch").read_text()
    assert "ContainerCreating" in lines
    assert "Running" in lines
    assert "Terminating" in lines


def test_logs_follow_a_running_container_to_its_end(kubectl, tmp_path):
    """[C6, N19] logs -f ends by itself when the container does"""
    run(
        kubectl, "counter", "sh", "-c", "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done",
        flags=("--restart=Never",),
    )  # fmt: skip
    eventually(lambda: kubectl.phase("counter") in {"Running", "Succeeded"})
    assert kubectl("logs", "-f", "counter") == "".join(f"line {i}\n" for i in range(1, 6))
    kubectl.wait_phase("counter", "Succeeded")
    assert kubectl("logs", "--tail=2", "counter") == "line 4\nline 5\n"
    stamped = kubectl("logs", "--timestamps", "--tail=1", "counter")
    assert stamped.endswith("Z line 5\n")
    kubectl("delete", "pod", "counter")


def test_exec_passes_streams_and_the_exit_code(kubectl):
    """[C6, N19]"""
    run(kubectl, "box", *FOREVER)
    kubectl.wait_phase("box", "Running")
    assert kubectl("exec", "box", "--", "echo", "hello") == "hello\n"
    upper = kubectl("exec", "-i", "box", "--", "tr", "a-z", "A-Z", stdin="from stdin\n")
    assert upper == "FROM STDIN\n"
    said = kubectl.fails("exec", "box", "--", "sh", "-c", "echo oops >&2; exit 7")
    assert "oops" in said
    assert "exit code 7" in said
    kubectl("delete", "pod", "box", "--now")


def test_exec_gives_a_terminal(cluster, kubectl):
    """[C6] exec -it -- sh: a real terminal on both ends"""
    run(kubectl, "terminal", *FOREVER)
    kubectl.wait_phase("terminal", "Running")
    ours, theirs = pty.openpty()
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.root / "home")}
    shell = subprocess.Popen(
        ["kubectl", "exec", "-it", "terminal", "--", "sh"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said = b""

    def until(text):
        nonlocal said
        deadline = time.monotonic() + 60
        while text not in said:
            assert time.monotonic() < deadline, said
            said += os.read(ours, 4096)

    until(b"#")
    os.write(ours, b"tty && echo $((6*7))\n")
    until(b"42")
    assert b"/dev/pts/" in said
    os.write(ours, b"exit 3\n")
    assert shell.wait(60) == 3
    os.close(ours)
    kubectl("delete", "pod", "terminal", "--now")


TWO_CONTAINERS = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: greeting}}
data: {{word: hello}}
---
apiVersion: v1
kind: Pod
metadata: {{name: pair, labels: {{app: pair}}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: {IMAGE}
    command: [sh, -c]
    args:
    - |
      mkdir -p /www
      echo "$GREETING $(POD) on $NODE" > /www/index.html
      exec httpd -f -p 8080 -h /www
    ports: [{{containerPort: 8080}}]
    env:
    - {{name: POD, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}
    - {{name: NODE, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}
    - {{name: GREETING, valueFrom: {{configMapKeyRef: {{name: greeting, key: word}}}}}}
  - name: client
    image: {IMAGE}
    command: [sh, -c, 'trap exit TERM; while :; do sleep 0.2; done']
"""
FETCH = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {} 8080"


def test_containers_of_a_pod_share_localhost_and_pods_reach_each_other(kubectl):
    """[N8, N10] apply of a multi-container pod with env; localhost; pod to pod by IP"""
    kubectl.apply(TWO_CONTAINERS)
    run(kubectl, "other", *FOREVER)
    for name in ("pair", "other"):
        kubectl.wait_phase(name, "Running")
    inside = eventually(
        lambda: kubectl("exec", "pair", "-c", "client", "--", "sh", "-c", FETCH.format("127.0.0.1"))
    )
    node = kubectl.get("pod", "pair")["spec"]["nodeName"]
    assert f"hello pair on {node}" in inside
    address = kubectl.get("pod", "pair")["status"]["podIP"]
    outside = kubectl("exec", "other", "--", "sh", "-c", FETCH.format(address))
    assert f"hello pair on {node}" in outside
    assert "unchanged" in kubectl.apply(TWO_CONTAINERS)
    kubectl("delete", "pod", "pair", "other", "--now")
    kubectl("delete", "configmap", "greeting")


def test_a_crashing_container_is_restarted_with_backoff(kubectl):
    """[N12]"""
    run(kubectl, "crash", "sh", "-c", "echo dying; exit 3")

    def waiting():
        statuses = kubectl.get("pod", "crash")["status"].get("containerStatuses") or [{}]
        state = statuses[0].get("state", {})
        return statuses[0] if state.get("waiting", {}).get("reason") == "CrashLoopBackOff" else None

    status = eventually(waiting)
    assert status["restartCount"] >= 1
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert status["lastState"]["terminated"]["reason"] == "Error"
    assert kubectl("logs", "crash", "--previous") == "dying\n"
    kubectl("delete", "pod", "crash", "--now")


def test_restart_policy_never_leaves_the_pod_failed(kubectl):
    """[N12]"""
    run(kubectl, "fails", "sh", "-c", "exit 4", flags=("--restart=Never",))
    kubectl.wait_phase("fails", "Failed")
    status = kubectl.get("pod", "fails")["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == 4
    assert status["restartCount"] == 0
    kubectl("delete", "pod", "fails")


def test_the_grace_period_is_given_and_then_over(kubectl):
    """[N11] a container that ignores SIGTERM is killed when its grace is over"""
    run(kubectl, "stubborn", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    kubectl.wait_phase("stubborn", "Running")
    began = time.monotonic()
    kubectl("delete", "pod", "stubborn", "--grace-period=2")
    assert time.monotonic() - began > 1.5


def test_a_missing_image_is_reported_and_does_not_block_others(kubectl, registry):
    """[N10] ErrImagePull, then ImagePullBackOff"""
    run(kubectl, "missing", "true", image=f"{registry.address}/no/such:1")

    def reason():
        statuses = kubectl.get("pod", "missing")["status"].get("containerStatuses") or [{}]
        return statuses[0].get("state", {}).get("waiting", {}).get("reason")

    eventually(lambda: reason() in {"ErrImagePull", "ImagePullBackOff"})
    eventually(lambda: reason() == "ImagePullBackOff")
    eventually(lambda: "Failed to pull image" in kubectl("describe", "pod", "missing"))
    run(kubectl, "fine", *FOREVER)
    kubectl.wait_phase("fine", "Running")
    kubectl("delete", "pod", "missing", "fine", "--now")


def test_an_invalid_manifest_names_every_fault(kubectl):
    """[A4]"""
    said = kubectl.fails(
        "create", "-f", "-",
        stdin="apiVersion: v1\nkind: Pod\nmetadata: {name: Bad_Name}\n"
        "spec: {containers: [{name: x}]}\n",
    )  # fmt: skip
    assert "metadata.name: Invalid value" in said
    assert "spec.containers[0].image: Required value" in said
    said = kubectl.fails(
        "create", "-f", "-",
        stdin="apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {contaners: []}\n",
    )  # fmt: skip
    # Older kubectls check this themselves, and name the field without its path.
    assert re.search(r'unknown field "(spec\.)?contaners"', said), said


def test_a_namespace_is_usable_at_once_and_takes_its_content_along(kubectl):
    """[X3] the default service account is there when the namespace's create returns"""
    kubectl("create", "namespace", "short-lived")
    assert kubectl.exists("serviceaccount", "default", "-n", "short-lived")
    assert kubectl.exists("configmap", "kube-root-ca.crt", "-n", "short-lived")
    kubectl("run", "inside", f"--image={IMAGE}", "-n", "short-lived", "--", *FOREVER)
    kubectl.wait_phase("inside", "Running", "short-lived")
    kubectl("delete", "namespace", "short-lived", seconds=90)
    assert not kubectl.exists("namespace", "short-lived")


def test_images_are_listed(cluster):
    assert "localhost/test/busybox:1" in cluster.run("image", "list")

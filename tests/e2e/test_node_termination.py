"""How real containers end, with kubectl as the witness [N11]."""

import json
import time

import pytest

from sampan.testing.processes import eventually

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
    create(kubectl, "stubborn", container("main", "trap '' TERM; while :; do sleep 0.1; done"),
           terminationGracePeriodSeconds=2)  # fmt: skip
    kubectl.wait_phase("stubborn", "Running")
    time.sleep(0.3)  # until its trap is set
    assert 1.9 < took(kubectl, "stubborn") < 6


def test_a_pre_stop_hook_that_hangs_takes_no_more_than_the_grace(kubectl):
    hook = {"preStop": {"exec": {"command": ["sleep", "60"]}}}
    loop = "trap exit TERM; while :; do sleep 0.1; done"
    create(kubectl, "hangs", container("main", loop, lifecycle=hook),
           terminationGracePeriodSeconds=1)  # fmt: skip
    kubectl.wait_phase("hangs", "Running")
    assert 0.9 < took(kubectl, "hangs") < 7
    assert "PreStopHook failed" in messages(kubectl, "hangs", "FailedPreStopHook")


def test_a_container_gets_the_stop_signal_that_it_names(kubectl, tmp_path):
    loop = "trap 'echo got it; exit' USR1; trap '' TERM; echo up; while :; do sleep 0.1; done"
    create(kubectl, "named", container("main", loop, lifecycle={"stopSignal": "SIGUSR1"}),
           terminationGracePeriodSeconds=20, os={"name": "linux"})  # fmt: skip
    eventually(lambda: kubectl.phase("named") == "Running" and "up" in kubectl("logs", "named"))
    shown = kubectl.background("logs", "-f", "named", output=tmp_path / "log")
    assert took(kubectl, "named") < 8
    shown.wait(20)
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
    say = "trap 'sleep 0.3; echo {0} >>/shared/ends; exit' TERM; while :; do sleep 0.05; done"
    mount = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    sidecars = [
        container(name, say.format(name), restartPolicy="Always", **mount)
        for name in ("first", "second")
    ]
    volume = {"name": "shared", "hostPath": {"path": str(tmp_path), "type": "Directory"}}
    create(kubectl, "ordered", container("main", say.format("main"), **mount),
           initContainers=sidecars, volumes=[volume], terminationGracePeriodSeconds=10)  # fmt: skip
    kubectl.wait_phase("ordered", "Running")
    time.sleep(0.3)
    took(kubectl, "ordered")
    assert (tmp_path / "ends").read_text().split() == ["main", "second", "first"]

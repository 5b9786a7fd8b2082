"""Pods that a real node ends by itself [N18]."""

import json

import pytest

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
FILL = "dd if=/dev/zero of=/data/file bs=1M count=5; trap exit TERM; while :; do sleep 0.1; done"


def test_a_pod_that_fills_its_volume_is_evicted_and_one_past_its_deadline_too(kubectl):
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    command = {"name": "main", "image": IMAGE, "command": ["sh", "-c", FILL]}
    full = {
        "containers": [{**command, **mount}],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}],
    }
    sleeps = {**command, "command": ["sh", "-c", "trap exit TERM; while :; do sleep 0.1; done"]}
    late = {"containers": [sleeps], "activeDeadlineSeconds": 2}
    for name, spec in (("full", full), ("late", late)):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        kubectl("create", "-f", "-", stdin=json.dumps(pod))
    kubectl.wait_phase("full", "Failed")
    status = kubectl.get("pod", "full")["status"]
    assert status["reason"] == "Evicted"
    assert 'Usage of EmptyDir volume "data" exceeds the limit "1Mi"' in status["message"]
    conditions = {one["type"]: one for one in status["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "TerminationByKubelet"
    kubectl.wait_phase("late", "Failed")
    assert kubectl.get("pod", "late")["status"]["reason"] == "DeadlineExceeded"
    kubectl("delete", "pod", "full", "late")

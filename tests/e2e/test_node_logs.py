"""Logs that are rotated, and that go on when their container does not [N18] [N19]."""

import json
from pathlib import Path

import pytest

from tests.support.parts.processes import eventually

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.runtime("native", "cri"),
]

IMAGE = "localhost/test/busybox:1"
FLOOD_LINES = 160_000
FLOOD = (
    "echo begin; until [ -f /follower ]; do sleep 0.2; done;"
    f"seq 1 {FLOOD_LINES} | sed s/^/a-line-that-is-long-enough-to-fill-the-file-soon-/;"
    " until [ -f /go ]; do sleep 0.2; done; echo last; trap exit TERM; while :; do sleep 0.1; done"
)


def create(kubectl, name, command, **spec):
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", command]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(pod))


def test_a_flood_is_rotated_and_a_follower_misses_nothing(cluster, kubectl, tmp_path):
    create(kubectl, "flood", FLOOD)
    kubectl.wait_phase("flood", "Running")
    uid = kubectl.get("pod", "flood")["metadata"]["uid"]
    follower = kubectl.background("logs", "-f", "flood", output=tmp_path / "log")
    eventually(lambda: (tmp_path / "log").read_text() == "begin\n")
    kubectl("exec", "flood", "--", "touch", "/follower")
    folder = Path("/var/log/pods") / f"default_flood_{uid}" / "main"
    eventually(lambda: list(folder.glob("0.log.*")))
    kubectl("exec", "flood", "--", "touch", "/go")
    eventually(lambda: kubectl("logs", "flood", "--tail=1") == "last\n")
    kubectl("delete", "pod", "flood")
    follower.wait(60)
    lines = (tmp_path / "log").read_text().splitlines()
    numbers = [int(line.rsplit("-", 1)[1]) for line in lines[1:-1]]
    assert numbers == list(range(1, FLOOD_LINES + 1))
    assert lines[-1] == "last"
    assert not folder.exists()


def test_a_follower_sees_the_end_of_the_container_that_it_follows(kubectl, tmp_path):
    """As upstream: the next instance is for the next who asks."""
    create(kubectl, "again", "echo begin; sleep 2; echo end")
    eventually(lambda: kubectl.phase("again") == "Running")
    follower = kubectl.background("logs", "-f", "again", output=tmp_path / "log")
    assert follower.wait(60) == 0
    assert (tmp_path / "log").read_text() == "begin\nend\n"
    assert kubectl.phase("again") == "Running"


def test_a_collector_finds_logs_where_it_looks_for_them(cluster, kubectl):
    """As fluent-bit and its like: hostPath /var/log, links in /var/log/containers."""
    create(kubectl, "talker", "echo collect-me; sleep 1000")
    kubectl.wait_phase("talker", "Running")
    uid = kubectl.get("pod", "talker")["metadata"]["uid"]
    mount = {"name": "log", "mountPath": "/var/log", "readOnly": True}
    logs = "/var/log/containers/talker_default_main-*.log"
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", f"until grep collect-me {logs}; do sleep 0.1; done; sleep 1000"],
        "volumeMounts": [mount],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "collector"},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "log", "hostPath": {"path": "/var/log"}}],
            "terminationGracePeriodSeconds": 1,
        },
    }
    kubectl("create", "-f", "-", stdin=json.dumps(pod))
    kubectl.wait_phase("collector", "Running")
    eventually(lambda: "collect-me" in kubectl("logs", "collector"))
    [node] = kubectl.get("nodes")["items"]
    name = node["metadata"]["name"]
    page = kubectl("get", "--raw", f"/api/v1/nodes/{name}/proxy/logs/pods/")
    assert f"default_talker_{uid}/" in page
    kubectl("delete", "pod", "talker", "collector", "--grace-period=1")
    eventually(lambda: not Path(f"/var/log/pods/default_talker_{uid}").exists())
    assert not list(Path("/var/log/containers").glob(f"talker_default_main-*{uid}*"))
    assert not (cluster.data_dir / "logs" / "pods" / f"default_talker_{uid}").is_symlink()

"""What the node says about usage [N19]."""

import os

from sampan.kubelet.stats.node_stats import NodeStats
from sampan.kubelet.stats.usage import read_interfaces
from tests.support.worlds.observed_pods import UID, container, exited_container, observed_pod

POD = {"metadata": {"name": "web", "namespace": "default", "uid": UID}}


def stats(seen):
    return NodeStats(cgroups=None, pods=lambda: [POD], observed=lambda uid: seen)


def test_running_containers_are_shown_under_upstreams_names():
    seen = observed_pod(container(), exited_container("done"))
    text = stats(seen).resource_metrics()
    labels = 'container="main",namespace="default",pod="web"'
    assert f"container_cpu_usage_seconds_total{{{labels}}} 0" in text
    assert 'pod_memory_working_set_bytes{namespace="default",pod="web"} 0' in text
    assert "node_cpu_usage_seconds_total " in text
    assert "done" not in text


def test_a_pod_without_a_sandbox_is_not_shown():
    assert "pod=" not in stats(None).resource_metrics()


class OnePodsCgroups:
    def __init__(self, root):
        self._root = root

    def path_of(self, uid, controller):
        return self._root / controller

    def place_of(self, uid):
        return "/pods/u"

    def container_folder(self, container_id):
        return container_id


def test_a_sandbox_without_a_process_has_the_interfaces_that_its_containers_see(tmp_path):
    """As --runtime native makes them."""
    seen = observed_pod(container())
    folder = tmp_path / "memory" / seen.containers[0].id
    folder.mkdir(parents=True)
    node = NodeStats(
        cgroups=OnePodsCgroups(tmp_path), pods=lambda: [POD], observed=lambda uid: seen
    )
    assert node.usage_of(POD, seen).interfaces == ()
    (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    interfaces = node.usage_of(POD, seen).interfaces
    assert [one.name for one in interfaces] == [one.name for one in read_interfaces(os.getpid())]

"""What the node says about usage [N19]."""

from sampan.kubelet.stats.node_stats import NodeStats
from sampan.testing.worlds.observed_pods import UID, container, exited_container, observed_pod

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

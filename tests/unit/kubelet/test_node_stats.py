"""What the node says about usage [N19]."""

import asyncio

from sampan.kubelet.node_machine import Machine
from sampan.kubelet.node_stats import NodeStats
from sampan.kubelet.settings import Capacity
from sampan.testing.manual_clock import ManualClock
from sampan.testing.observed_pods import UID, container, exited, observed

POD = {"metadata": {"name": "web", "namespace": "default", "uid": UID}}


def stats(clock, seen):
    return NodeStats(
        node_name="n1", cgroups=None, pods=lambda: [POD], observed=lambda uid: seen,
        machine=Machine(Capacity(2000, 1 << 30)), root_dir="/nowhere", clock=clock,
    )  # fmt: skip


def test_running_containers_are_shown_under_upstreams_names():
    seen = observed(container(), exited("done"))
    text = stats(ManualClock(), seen).resource_metrics()
    labels = 'container="main",namespace="default",pod="web"'
    assert f"container_cpu_usage_seconds_total{{{labels}}} 0" in text
    assert 'pod_memory_working_set_bytes{namespace="default",pod="web"} 0' in text
    assert "node_cpu_usage_seconds_total " in text
    assert "done" not in text
    assert "machine_cpu_cores 2" in stats(ManualClock(), seen).cadvisor()


def test_a_pod_without_a_sandbox_is_not_shown():
    assert "pod=" not in stats(ManualClock(), None).resource_metrics()


def test_the_summary_has_rates_from_the_second_time_on():
    clock = ManualClock()
    one = stats(clock, observed(container()))
    first = one.summary()
    assert "usageNanoCores" not in first["node"]["cpu"]
    assert first["pods"][0]["podRef"]["name"] == "web"
    asyncio.run(clock.advance(1.0))
    assert "usageNanoCores" in one.summary()["node"]["cpu"]

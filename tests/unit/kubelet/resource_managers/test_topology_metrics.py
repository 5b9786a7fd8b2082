"""What is counted of admissions [H5]."""

import asyncio
import contextlib

import pytest

from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.resources_hook import PodRefused
from sampan.kubelet.resource_managers.topology_metrics import TopologyMetrics
from sampan.kubelet.resource_managers.topology_policies import TopologySettings
from tests.support.manual_clock import ManualClock


def counted(settings, story):
    metrics, clock = Metrics(), ManualClock()
    story(TopologyMetrics(metrics, clock, settings), clock)
    lines = (line.rpartition(" ") for line in metrics.render().splitlines())
    return {name.removeprefix("kubelet_"): float(value) for name, _, value in lines
            if name.startswith("kubelet_") and "bucket" not in name}  # fmt: skip


def refused(topology, _clock):
    with contextlib.suppress(PodRefused), topology.admission():
        topology.aligned("container", is_aligned=False)
        raise PodRefused("TopologyAffinityError", "Resources cannot be allocated")


@pytest.mark.parametrize(("policy", "failed"), [("none", 0), ("restricted", 1)])
def test_a_refusal_is_a_failure_where_something_is_aligned(policy, failed):
    found = counted(TopologySettings(policy), refused)
    assert found["topology_manager_admission_requests_total"] == 1
    assert found.get("topology_manager_admission_errors_total", 0) == failed
    assert found["topology_manager_admission_duration_ms_count"] == 1


@pytest.mark.parametrize(
    ("settings", "container", "pod"),
    [
        (TopologySettings("single-numa-node"), 2, 0),
        (TopologySettings("single-numa-node", "pod"), 0, 1),
        (TopologySettings("restricted"), 0, 0),
    ],
)
def test_aligned_numa_nodes_are_counted_where_they_are_guaranteed(settings, container, pod):
    def story(topology, clock):
        with topology.admission():
            topology.aligned("container")
            topology.aligned("container")
            topology.aligned("pod")
            asyncio.run(clock.advance(0.0075))

    found = counted(settings, story)
    name = 'container_aligned_compute_resources_count{{scope="{}",boundary="numa_node"}}'
    assert (found[name.format("container")], found[name.format("pod")]) == (container, pod)
    assert found["topology_manager_admission_duration_ms_sum"] == 7


def test_what_cannot_be_aligned_is_counted():
    found = counted(TopologySettings("single-numa-node"), refused)
    where = '{scope="container",boundary="numa_node"}'
    assert found[f"container_aligned_compute_resources_failure_count{where}"] == 1

from dataclasses import replace

from sampan.core.metrics import Metrics
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.decide import Chosen
from sampan.scheduler.metrics import SCHEDULED, Measures
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.queue.queue_state import QueueState


def test_metrics_have_upstreams_names_and_labels():
    metrics, queue, cache = Metrics(), QueueState(), CacheState()
    measures = Measures(metrics, queue, cache)
    queue.put(pod_info_of({"metadata": {"uid": "a"}}), 0)
    queue.put(
        pod_info_of({"metadata": {"uid": "b"}, "spec": {"schedulingGates": [{"name": "g"}]}}), 0
    )
    rendered = metrics.render()
    assert 'scheduler_pending_pods{queue="active"} 1' in rendered
    assert 'scheduler_pending_pods{queue="gated"} 1' in rendered
    waiting = queue.pop(0)
    measures.attempted(SCHEDULED, 0.002, "default-scheduler")
    measures.scheduled(waiting, 3.0)
    measures.scheduled(replace(waiting, attempts=40), 3.0)
    measures.decided(waiting, Chosen("n", 1, 0), 0.0005)
    queue.refused("a", frozenset({"NodePorts", "NodeAffinity"}), 4.0)
    cache.put_node(node_info_of({"metadata": {"name": "n"}}))
    cache.assume("x", "n", AssignedPod(Usage((), 0, 0)))
    rendered = metrics.render()
    for line in (
        'scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"} 1',
        'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1',
        'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"} 1',
        "scheduler_scheduling_attempt_duration_seconds_bucket",
        "scheduler_pod_scheduling_attempts_count 2",
        "scheduler_scheduling_algorithm_duration_seconds_count 1",
        'scheduler_unschedulable_pods{plugin="NodePorts",profile="default-scheduler"} 1',
        'scheduler_cache_size{type="nodes"} 1',
        'scheduler_cache_size{type="assumed_pods"} 1',
    ):
        assert line in rendered

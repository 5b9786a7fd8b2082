"""A whole pod in one step: only where nobody is told of the steps."""

import random

from sampan.client.no_api_client import NoApiClient
from sampan.core.fast_dataclass import replace
from sampan.core.metrics import Metrics
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.runtime import Credentials
from sampan.kubelet.images.access import ImageAccess
from sampan.kubelet.pods.start_at_once import StartAtOnce
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support.manual_clock import ManualClock
from tests.support.worlds.simulated_node import pod_named


def context(**settings):
    clock = ManualClock()
    runtime = SimulatedRuntime(clock=clock)
    return NodeContext(
        KubeletSettings("n", routine_events=False, **settings),
        NoApiClient(),
        runtime,
        clock,
        Metrics(),
        random.Random(1),
        start_at_once=runtime.start_at_once,
    )


def a_pod():
    pod = pod_named("web")
    pod["metadata"] |= {"uid": "web", "namespace": "default"}
    return pod


def test_a_pod_that_needs_nothing_runs_and_is_counted():
    node = context()
    assert StartAtOnce(node, ImageAccess("")).start(a_pod())
    assert list(node.runtime.table.uids()) == ["web"]
    text = node.metrics.render()
    assert "kubelet_started_pods_total 1" in text
    assert 'kubelet_started_containers_total{container_type="container"} 1' in text


def test_a_pod_that_needs_care_is_left_to_its_steps():
    node, pod = context(), a_pod()
    pod["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    assert not StartAtOnce(node, ImageAccess("")).start(pod)
    assert not list(node.runtime.table.uids())
    assert "kubelet_started_pods_total 0" in node.metrics.render()


def test_where_steps_are_told_or_images_are_not_everybodys_none_starts_so():
    node, access = context(), ImageAccess("")
    told = replace(node, settings=replace(node.settings, routine_events=True))
    assert not StartAtOnce(told, access).start(a_pod())
    access.pulled("sha256:1", "registry.example/app", Credentials("user", "password"))
    assert not StartAtOnce(node, access).start(a_pod())

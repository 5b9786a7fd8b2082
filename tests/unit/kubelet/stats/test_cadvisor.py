"""The figures that dashboards read, under upstream's names [N19]."""

from sampan.kubelet.contracts.runtime import Layer
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.settings import Capacity
from sampan.kubelet.stats import cadvisor
from sampan.kubelet.stats.node_stats import ContainerUsage, PodUsage
from sampan.kubelet.stats.usage import Interface, Usage
from tests.support.worlds.observed_pods import UID, container

POD = {"metadata": {"name": "web", "namespace": "default", "uid": UID}}
MACHINE = Machine(Capacity(2000, 1 << 30), swap_bytes=5)


def shown(usage, layers=None):
    status = container()
    one = PodUsage(
        POD, usage, "/pods/u", 1.0, (ContainerUsage(status, usage),), (Interface("eth0", 100, 1),)
    )
    layers = {} if layers is None else {status.id: layers}
    return cadvisor.render(MACHINE, [one], layers, 99.5)


def test_pods_and_containers_have_their_cpu_memory_and_network():
    text = shown(Usage(cpu_nanoseconds=2_500_000_000, cpu_periods=4, rss_bytes=7, oom_kills=1))
    assert "machine_cpu_cores 2" in text
    assert "machine_swap_bytes 5" in text
    of_pod = 'container="",id="/pods/u",image="",name="",namespace="default",pod="web"'
    assert f"container_cpu_usage_seconds_total{{{of_pod}}} 2.5" in text
    assert f"container_cpu_cfs_periods_total{{{of_pod}}} 4" in text
    assert f"container_last_seen{{{of_pod}}} 99" in text
    assert 'container_memory_rss{container="main"' in text
    assert 'container_oom_events_total{container="main"' in text
    network = 'id="/pods/u",image="",interface="eth0",name="",namespace="default",pod="web"'
    assert f"container_network_receive_bytes_total{{{network}}} 100" in text


def test_what_is_not_known_is_not_shown():
    text = shown(Usage())
    assert "cfs" not in text  # there is no quota
    assert "container_fs" not in text
    assert 'container_fs_usage_bytes{container="main",device=""' in shown(Usage(), Layer(10, 2))

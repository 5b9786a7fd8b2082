"""The figures that dashboards read, under upstream's names [N19]."""

from sampan.kubelet.contracts.runtime import Layer
from sampan.kubelet.node.machine import Machine
from sampan.kubelet.settings import Capacity
from sampan.kubelet.stats import cadvisor
from sampan.kubelet.stats.cgroup_bounds import NO_BOUNDS, Bounds, Disk
from sampan.kubelet.stats.node_stats import ContainerUsage, PodUsage
from sampan.kubelet.stats.usage import Interface, Usage
from tests.support.worlds.observed_pods import UID, container

POD = {"metadata": {"name": "web", "namespace": "default", "uid": UID}}
MACHINE = Machine(Capacity(2000, 1 << 30), swap_bytes=5)


def shown(usage, layers=None, bounds=NO_BOUNDS):
    status = container()
    inside = ContainerUsage(status, usage, "/pods/u/c", bounds)
    one = PodUsage(POD, usage, "/pods/u", 1.0, (inside,), (Interface("eth0", 100, 1),))
    layers = {} if layers is None else {status.id: layers}
    return cadvisor.render(MACHINE, [one], layers, 99.5)


def test_pods_and_containers_have_their_cpu_memory_and_network():
    text = shown(Usage(cpu_nanoseconds=2_500_000_000, cpu_periods=4, rss_bytes=7, oom_kills=1))
    assert "machine_cpu_cores 2" in text
    assert "machine_swap_bytes 5" in text
    of_pod = 'container="",id="/pods/u",image="",name="",namespace="default",pod="web"'
    total = of_pod.replace(",id=", ',cpu="total",id=')
    assert f"container_cpu_usage_seconds_total{{{total}}} 2.5" in text
    machine = 'container="",cpu="total",id="/",image="",name="",namespace="",pod=""'
    assert f"container_cpu_usage_seconds_total{{{machine}}}" in text
    assert f"container_cpu_cfs_periods_total{{{of_pod}}} 4" in text
    assert f"container_last_seen{{{of_pod}}} 99" in text
    assert 'container_memory_rss{container="main"' in text
    assert 'container_oom_events_total{container="main"' in text
    network = 'id="/pods/u",image="",interface="eth0",name="",namespace="default",pod="web"'
    assert f"container_network_receive_bytes_total{{{network}}} 100" in text


def test_what_a_container_may_use_waited_for_and_wrote():
    bounds = Bounds(
        cpu_shares=102, cpu_period=100000, memory_bytes=64, swap_bytes=0, reserved_bytes=0,
        pressure={"memory": (2.5, 0.5)}, disks=(Disk("/dev/vda", 1, 2, 3, 4),),
    )  # fmt: skip
    lines = [line for line in shown(Usage(), bounds=bounds).splitlines() if "/pods/u/c" in line]
    found = {line.partition("{")[0]: line.rpartition(" ")[2] for line in lines}
    assert found["container_spec_cpu_shares"] == "102"
    assert found["container_spec_memory_limit_bytes"] == "64"
    assert "container_spec_cpu_quota" not in found
    assert found["container_pressure_memory_waiting_seconds_total"] == "2.5"
    assert found["container_pressure_memory_stalled_seconds_total"] == "0.5"
    assert "container_pressure_cpu_waiting_seconds_total" not in found
    assert found["container_fs_writes_bytes_total"] == "2"


def test_what_is_not_known_is_not_shown():
    text = shown(Usage())
    assert "cfs" not in text  # there is no quota
    assert "container_fs" not in text
    assert "pressure" not in text
    assert 'container_fs_usage_bytes{container="main",device=""' in shown(Usage(), Layer(10, 2))

from sampan.kubelet.node_parts import facts_of, machine_of, made_cgroups, sources_of
from sampan.kubelet.settings import Capacity, KubeletSettings


def test_all_sources_that_there_are_must_have_spoken():
    """[N3]"""
    assert sources_of(KubeletSettings("n")) == ["api"]
    assert sources_of(KubeletSettings("n", manifests="/m", manifest_url="http://u")) == [
        "api",
        "file",
        "http",
    ]
    assert sources_of(KubeletSettings("n", standalone=True, manifests="/m")) == ["file"]


def test_a_simulated_node_shows_nothing_of_the_machine():
    settings = KubeletSettings(
        "n", simulated=True, cgroup_root="/x", capacity=Capacity(1500, 2**30)
    )
    machine = machine_of(settings)
    assert machine.capacity.cpu_milli == 1500
    assert facts_of(settings, machine).allocatable["cpu"] == "1500m"
    assert made_cgroups(settings, machine) is None


def test_a_real_node_s_capacity_is_the_machine_s(tmp_path):
    machine = machine_of(KubeletSettings("n", root_dir=str(tmp_path)))
    assert machine.capacity.memory_bytes > 0
    assert facts_of(KubeletSettings("n", hostname="h"), machine).hostname == "h"

from sampan.kubelet.eviction.eviction_rules import MEMORY, NODEFS, EvictionSettings, Threshold
from sampan.kubelet.node.machine import (
    less_reserved,
    read_hugepages,
    read_machine,
    read_selinux_context,
)
from sampan.kubelet.settings import Capacity, KubeletSettings, Reserved


def test_the_machine_is_read(tmp_path):
    machine = read_machine(str(tmp_path / "not" / "there"))
    assert machine.capacity.cpu_milli >= 1000
    assert machine.capacity.memory_bytes > 0
    assert machine.capacity.ephemeral_bytes > 0
    assert machine.kernel_version


def test_a_stated_capacity_goes_before_the_machines_own(tmp_path):
    stated = Capacity(cpu_milli=1, memory_bytes=2)
    assert read_machine(str(tmp_path), stated).capacity == stated


def test_pods_get_what_is_not_reserved_and_what_evictions_leave():
    """[N17]"""
    settings = KubeletSettings(
        "n",
        max_pods=7,
        reserved=Reserved(cpu_milli=500, memory_bytes=100, ephemeral_bytes=10),
        eviction=EvictionSettings(
            (
                Threshold(MEMORY, 30),
                Threshold(NODEFS, percent=10.0),
                Threshold(MEMORY, 900, grace_seconds=5.0),  # a soft one keeps nothing free
            )
        ),
    )
    room = less_reserved(Capacity(2000, 1000, ephemeral_bytes=5000), settings)
    assert room.pods == 7
    assert room.reserved_cpu_milli == 500
    assert room.reserved_memory_bytes == 130
    assert room.reserved_ephemeral_bytes == 510


def test_huge_pages_are_named_by_their_size(tmp_path):
    """[N16]"""
    for size, count in ((2048, "3\n"), (1048576, "1\n"), (64, "")):
        folder = tmp_path / f"hugepages-{size}kB"
        folder.mkdir()
        (folder / "nr_hugepages").write_text(count)
    assert read_hugepages(tmp_path) == {"2Mi": 6 << 20, "1Gi": 1 << 30, "64Ki": 0}
    assert read_hugepages(tmp_path / "none") == {}


def test_the_label_of_containers_files_is_that_of_the_policy(tmp_path):
    assert read_selinux_context(tmp_path) == ""
    contexts = tmp_path / "etc/selinux/mls/contexts"
    contexts.mkdir(parents=True)
    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").write_text("1")
    (tmp_path / "etc/selinux/config").write_text("# SELINUXTYPE=no\nSELINUXTYPE=mls\n")
    (contexts / "lxc_contexts").write_text(
        'process = "a"\nfile = "u:object_r:container_file_t:s0"\n'
    )
    assert read_selinux_context(tmp_path) == "u:object_r:container_file_t:s0"

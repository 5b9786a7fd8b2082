"""What cgroups may use and waited for, from the kernel's files of both versions."""

from sampan.kubelet.stats.cgroup_bounds import NO_BOUNDS, Bounds, read_bounds


def written(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_version_2(tmp_path):
    folder = written(
        tmp_path / "pod", cpu__weight="39\n", cpu__max="50000 100000\n", memory__max="1024\n",
        memory__swap__max="max\n", memory__min="0\n",
        cpu__pressure="some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n",
        io__stat="999:7 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n",
    )  # fmt: skip
    found = read_bounds(folder, folder, folder)
    assert (found.cpu_shares, found.cpu_quota, found.cpu_period) == (998, 50000, 100000)
    assert (found.memory_bytes, found.swap_bytes, found.reserved_bytes) == (1024, 0, 0)
    assert found.pressure == {"cpu": (2.5, 0.5)}
    [disk] = found.disks
    assert (disk.device, disk.read_bytes, disk.written_bytes) == ("999:7", 10, 20)
    assert (disk.reads, disk.writes) == (1, 2)


def test_version_1(tmp_path):
    cpu = written(
        tmp_path / "cpu", cpu__shares="102\n", cpu__cfs_quota_us="-1\n",
        cpu__cfs_period_us="100000\n",
    )  # fmt: skip
    memory = written(
        tmp_path / "memory", memory__limit_in_bytes="2048\n",
        memory__soft_limit_in_bytes="9223372036854771712\n",
    )  # fmt: skip
    disks = written(
        tmp_path / "blkio",
        blkio__throttle__io_service_bytes_recursive="999:7 Read 4096\n999:7 Write 1\nTotal 4097\n",
        blkio__throttle__io_serviced_recursive="999:7 Read 3\n999:7 Sync 3\nTotal 3\n",
    )
    found = read_bounds(cpu, memory, disks)
    assert (found.cpu_shares, found.cpu_quota, found.cpu_period) == (102, 0, 100000)
    assert (found.memory_bytes, found.swap_bytes, found.reserved_bytes) == (2048, 0, 0)
    assert found.pressure == {}
    [disk] = found.disks
    assert (disk.read_bytes, disk.written_bytes, disk.reads, disk.writes) == (4096, 1, 3, 0)


def test_what_is_gone_says_nothing(tmp_path):
    gone = tmp_path / "gone"
    assert read_bounds(gone, gone, gone) == read_bounds(None, None, None) == NO_BOUNDS == Bounds()

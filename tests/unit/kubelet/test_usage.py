"""Figures from the kernel's files [N16] [N19]."""

from sampan.kubelet.usage import read_machine_usage, read_usage


def test_version_1_and_version_2_are_read_alike(tmp_path):
    v1, v2 = tmp_path / "v1", tmp_path / "v2"
    for folder in (v1, v2):
        folder.mkdir()
        (folder / "pids.current").write_text("7\n")
    (v1 / "cpuacct.usage").write_text("5000\n")
    (v1 / "memory.usage_in_bytes").write_text("100\n")
    (v1 / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 30\ntotal_rss 60\n")
    (v2 / "cpu.stat").write_text("usage_usec 5\nuser_usec 3\n")
    (v2 / "memory.current").write_text("100\n")
    (v2 / "memory.stat").write_text("anon 60\ninactive_file 30\n")
    for folder in (v1, v2):
        usage = read_usage(folder, folder, folder)
        assert (usage.cpu_nanoseconds, usage.memory_bytes) == (5000, 100)
        assert (usage.working_set_bytes, usage.rss_bytes, usage.processes) == (70, 60, 7)


def test_what_is_gone_is_nothing(tmp_path):
    assert read_usage(tmp_path / "x", None, None).cpu_nanoseconds == 0


def test_the_machine_is_read_from_proc(tmp_path):
    (tmp_path / "stat").write_text("cpu  100 0 50 1000 10 0 0 0 0 0\ncpu0 1\n")
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemFree: 20 kB\nMemAvailable: 60 kB\n")
    usage = read_machine_usage(tmp_path)
    assert usage.cpu_nanoseconds == 1_500_000_000
    assert (usage.memory_bytes, usage.working_set_bytes) == (80 * 1024, 40 * 1024)

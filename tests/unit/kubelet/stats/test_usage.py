"""Figures from the kernel's files [N16] [N19]."""

from sampan.kubelet.stats.usage import (
    Interface,
    first_process,
    read_interfaces,
    read_machine_usage,
    read_usage,
)


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


def test_throttling_and_failures_are_read_alike(tmp_path):
    v1, cpu, v2 = tmp_path / "v1", tmp_path / "cpu", tmp_path / "v2"
    for folder in (v1, cpu, v2):
        folder.mkdir()
    (v1 / "cpuacct.usage").write_text("5000\n")
    (v1 / "cpuacct.stat").write_text("user 3\nsystem 2\n")
    (cpu / "cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nthrottled_time 7000\n")
    (v1 / "memory.failcnt").write_text("6\n")
    (v1 / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    (v1 / "memory.max_usage_in_bytes").write_text("900\n")
    (v2 / "cpu.stat").write_text(
        "usage_usec 5\nuser_usec 30000\nsystem_usec 20000\nnr_periods 9\nnr_throttled 4\n"
        "throttled_usec 7\n"
    )
    (v2 / "memory.events").write_text("low 0\nmax 6\noom 2\noom_kill 1\n")
    (v2 / "memory.peak").write_text("900\n")
    for usage in (read_usage(v1, v1, None, cpu), read_usage(v2, v2, v2, v2)):
        assert (usage.cpu_user_nanoseconds, usage.cpu_system_nanoseconds) == (
            30_000_000,
            20_000_000,
        )
        assert (usage.cpu_periods, usage.cpu_throttled_periods) == (9, 4)
        assert usage.cpu_throttled_nanoseconds == 7000
        assert (usage.limit_failures, usage.oom_kills, usage.peak_bytes) == (6, 1, 900)


def test_interfaces_are_those_of_the_process(tmp_path):
    (tmp_path / "7/net").mkdir(parents=True)
    (tmp_path / "7/net/dev").write_text(
        "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
        "    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        "  eth0: 100 10 1 2 0 0 0 0 200 20 3 4 0 0 0 0\n"
    )
    assert read_interfaces(7, tmp_path) == (Interface("eth0", 100, 10, 1, 2, 200, 20, 3, 4),)
    assert read_interfaces(8, tmp_path) == ()
    (tmp_path / "cgroup.procs").write_text("7\n9\n")
    assert first_process(tmp_path) == 7
    assert first_process(tmp_path / "gone") == first_process(None) == 0

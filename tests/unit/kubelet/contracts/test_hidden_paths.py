from sampan.kubelet.contracts.hidden_paths import masked_paths


def test_what_processors_say_of_their_heat_is_masked_where_they_do(tmp_path):
    for name in ("cpu10", "cpu2", "cpufreq", "cpu²"):
        (tmp_path / name / "thermal_throttle").mkdir(parents=True)
    (tmp_path / "cpu3").mkdir()
    found = masked_paths(str(tmp_path))
    assert found[-2:] == tuple(f"{tmp_path}/cpu{at}/thermal_throttle" for at in (2, 10))
    assert found[:-2] == masked_paths(str(tmp_path / "nothing"))
    assert "/proc/interrupts" in found
    masked_paths.cache_clear()

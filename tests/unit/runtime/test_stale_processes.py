from pathlib import Path

from sampan.runtime.programs import Programs
from sampan.runtime.stale_processes import forget_ended


def programs(state: Path, name: str) -> Programs:
    return Programs(f"/usr/bin/{name}", "/usr/bin/conmon", str(state), name)


def test_of_an_ended_container_crun_keeps_nothing(tmp_path: Path) -> None:
    state, bundle = tmp_path / "state", tmp_path / "bundle"
    for container in ("ended", "other"):
        (state / container).mkdir(parents=True)
        (state / container / "status").write_text("{}")
    bundle.mkdir()
    (bundle / "config.json").write_text('{"linux": {"cgroupsPath": "/sampan-test-none/ended"}}')

    for _ in range(2):  # what is gone is no error
        assert forget_ended(programs(state, "crun"), "ended", bundle)
        assert [place.name for place in state.iterdir()] == ["other"]


def test_another_runtime_is_asked_itself(tmp_path: Path) -> None:
    (tmp_path / "ended").mkdir()

    assert not forget_ended(programs(tmp_path, "runc"), "ended", tmp_path)
    assert (tmp_path / "ended").is_dir()

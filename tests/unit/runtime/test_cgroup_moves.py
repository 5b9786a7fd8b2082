import os
import threading
from pathlib import Path

import pytest

from sampan.runtime.cgroup_moves import CgroupMoves, own_place

HYBRID = "9:name=systemd:/\n8:pids:/\n4:memory:/jobs/7\n0::/user.slice\n"


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("0::/\n", ""),
        ("0::/system.slice/sampan.service\n", "/system.slice/sampan.service"),
        (HYBRID, "/memory/jobs/7"),
        ("3:cpu,cpuacct:/\n0::/\n", "/cpu,cpuacct"),
        ("1:name=systemd:/init.scope\n", ""),
    ],
)
def test_the_place_of_a_process_is_a_folder_below_the_mount(said: str, place: str) -> None:
    assert own_place(said) == place


def _own_file(cgroups: Path) -> Path:
    place = cgroups / own_place(Path("/proc/self/cgroup").read_text()).lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    return place / "cgroup.procs"


def _threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def test_this_process_is_moved_to_where_it_is(tmp_path: Path) -> None:
    before, moves, file = _threads(), CgroupMoves(str(tmp_path)), _own_file(tmp_path)
    file.touch()
    moves.expect()
    with moves.start():
        pass
    for thread in _threads() - before:
        thread.join(60)
    assert file.read_text() == str(os.getpid())


def test_expecting_again_is_no_second_thread(tmp_path: Path) -> None:
    before, moves, file = _threads(), CgroupMoves(str(tmp_path)), _own_file(tmp_path)
    os.mkfifo(file)  # whoever opens it to write waits for a reader: the kernel has not answered yet
    moves.expect()
    (thread,) = _threads() - before
    moves.expect()
    assert _threads() - before == {thread}
    with moves.start():
        assert _threads() - before == {thread}
    assert file.read_text() == str(os.getpid())
    thread.join(60)
    assert not thread.is_alive()


def test_while_containers_are_started_their_own_moves_do(tmp_path: Path) -> None:
    before, moves = _threads(), CgroupMoves(str(tmp_path / "missing"))
    with moves.start():
        for thread in _threads() - before:
            thread.join(60)
        moves.expect()
        with moves.start():
            assert _threads() <= before


def test_where_it_may_not_it_ends_and_may_try_again(tmp_path: Path) -> None:
    before, moves = _threads(), CgroupMoves(str(tmp_path / "missing"))
    for _ in range(2):
        moves.expect()
        for thread in _threads() - before:
            thread.join(60)
        assert _threads() <= before

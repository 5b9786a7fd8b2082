"""cmd/cluster/data_dir.py: one cluster's home, and who lives in it."""

import os
import stat
import subprocess
import sys

import pytest

from sampan.cmd.cluster.data_dir import (
    DataDirError,
    Lock,
    find_data_dir,
    holder,
    open_data_dir,
    write_private,
)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_new_directory_is_private_and_can_be_opened_again(tmp_path):
    data = open_data_dir(str(tmp_path / "a" / "b"))
    assert mode(data.root) == 0o700
    data.remember(port=1234)
    assert mode(data.record_file) == 0o600
    assert open_data_dir(str(data.root)).record() == {"port": 1234}


def test_what_is_known_is_not_written_again(tmp_path):
    """A start again would wait for the disk."""
    data = open_data_dir(str(tmp_path / "a"))
    data.remember(port=1234, version="1")
    before = data.record_file.stat().st_ino
    data.remember(port=1234)
    assert data.record_file.stat().st_ino == before
    data.remember(port=1235)
    assert data.record() == {"port": 1235, "version": "1"}


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(DataDirError, match="not empty"):
        open_data_dir(str(tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_keys_of_another_process_of_the_cluster_may_be_there_first(tmp_path):
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_text("x")
    assert open_data_dir(str(tmp_path)).format_file.exists()


def test_a_newer_format_is_refused(tmp_path):
    data = open_data_dir(str(tmp_path / "d"))
    data.format_file.write_text("99\n")
    with pytest.raises(DataDirError, match=r"newer sampan \(format 99"):
        open_data_dir(str(data.root))


def test_a_path_that_cannot_be_a_directory_gets_one_clear_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirError, match="--data-dir"):
        open_data_dir(str(tmp_path / "file" / "sub"))


def test_looking_for_a_cluster_where_there_is_none(tmp_path):
    with pytest.raises(DataDirError, match="no sampan cluster"):
        find_data_dir(str(tmp_path))


def test_the_lock_names_its_holder_and_falls_with_it(tmp_path):
    data = open_data_dir(str(tmp_path / "d"))
    script = (
        "import sys\n"
        "from sampan.cmd.cluster.data_dir import Lock, open_data_dir\n"
        "lock = Lock.take(open_data_dir(sys.argv[1]))\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(data.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with child:
        assert child.stdout.readline() == b"locked\n"
        assert holder(data) == child.pid
        with pytest.raises(DataDirError, match=f"process {child.pid}"):
            Lock.take(data)
        child.kill()
    assert holder(data) is None
    Lock.take(data).release()


def test_a_trap_beside_the_file_is_not_written_into(tmp_path):
    """An attack: a link under the name that the new file has for a moment."""
    target = tmp_path / "victim"
    target.write_text("precious")
    (tmp_path / f".key.{os.getpid()}").symlink_to(target)
    write_private(tmp_path / "key", b"secret")
    assert target.read_text() == "precious"
    assert (tmp_path / "key").read_bytes() == b"secret"
    assert not (tmp_path / "key").is_symlink()
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600

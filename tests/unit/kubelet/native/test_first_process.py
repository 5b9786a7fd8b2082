"""The process that holds the processes of a pod together: is it there?"""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from sampan.kubelet.native.first_process import process_namespace


@contextmanager
def process(*words):
    """One that has these on its command line, and is there until the block ends."""
    command = [sys.executable, "-c", "print(flush=True); input()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        started.stdout.readline()
        yield started.pid
        started.communicate(b"\n")


@pytest.mark.parametrize("word", ["a-sandbox", "/pause"])
def test_it_is_there_as_its_program_and_while_it_is_still_the_runtime(tmp_path, word):
    place = tmp_path / "a-sandbox"
    (place / "first").mkdir(parents=True)
    with process(word) as pid:
        (place / "first" / "pid").write_text(str(pid))
        assert process_namespace(place) == f"/proc/{pid}/ns/pid"
    assert process_namespace(place) == ""


def test_another_one_of_that_number_is_not_it(tmp_path):
    (tmp_path / "first").mkdir()
    with process("else") as pid:
        (tmp_path / "first" / "pid").write_text(str(pid))
        assert process_namespace(tmp_path) == ""

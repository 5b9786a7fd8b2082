"""cmd/cluster/progress.py: one line per step, colours only on a terminal."""

import io

import pytest

from sampan.cmd.cluster.progress import Progress, paint_marks
from sampan.core.clock import SystemClock


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_step_is_one_line_with_its_detail_and_time():
    stream = io.StringIO()
    with Progress(stream, SystemClock()).step("store") as step:
        step.detail = "sqlite"
    assert stream.getvalue().split() == ["✓", "store", "sqlite", "0", "ms"]
    assert "\x1b" not in stream.getvalue()


def test_a_step_that_fails_is_marked_and_the_error_goes_on():
    stream = io.StringIO()
    with pytest.raises(KeyError), Progress(stream, SystemClock()).step("store"):
        raise KeyError("x")
    assert "✗ store" in stream.getvalue()


def test_a_line_may_wait_for_that_of_a_step_beside_it():
    stream = io.StringIO()
    progress = Progress(stream, SystemClock())
    with progress.step("API server"):
        with progress.step("containers", after="API server"):
            pass
        assert stream.getvalue() == ""
    with progress.step("node", after="API server"):  # which is over
        pass
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == [
        "API", "containers", "node",
    ]  # fmt: skip
    with progress.step("API server"):
        with pytest.raises(OSError, match="gone"), progress.step("containers", after="API server"):
            raise OSError("gone")
        assert stream.getvalue().splitlines()[-1].split()[:2] == ["✗", "containers"]


def test_a_terminal_gets_colours():
    stream = Terminal()
    with Progress(stream, SystemClock()).step("store"):
        pass
    assert "\x1b[32m✓\x1b[0m" in stream.getvalue()


def test_who_wants_no_colours_gets_none(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    with Progress(stream, SystemClock()).step("store"):
        pass
    assert "\x1b" not in stream.getvalue()


def test_what_a_process_in_the_background_wrote_gets_the_same_colours():
    plain, coloured = io.StringIO(), Terminal()
    for stream in (plain, coloured):
        progress = Progress(stream, SystemClock())
        progress.warn("odd ✓ !")
        with pytest.raises(KeyError), progress.step("store"):
            raise KeyError("x")
    assert paint_marks(plain.getvalue()) == coloured.getvalue()


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_on_a_terminal_a_long_step_counts_in_the_line_that_it_will_have(stream):
    with Progress(stream, SystemClock()).step("store") as step:
        step.count(2000, 150000)
        step.count(1, 10)
    counted = "2 000 of 150 000" in stream.getvalue()
    assert counted == stream.isatty()
    assert stream.getvalue().count("\r") == counted
    assert stream.getvalue().count("\n") == 1

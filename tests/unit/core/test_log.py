"""core/log.py: one event, one line, fields that can be parsed."""

import io
import logging
import subprocess
import sys

import pytest

from sampan.core import log


@pytest.fixture
def lines():
    stream = io.StringIO()
    root = logging.getLogger("sampan")
    before = root.handlers[:], root.level, root.propagate
    log.set_up("info", stream)
    yield lambda: stream.getvalue().splitlines()
    root.handlers[:], root.level, root.propagate = before


def test_a_line_is_a_sentence_and_its_fields(lines):
    log.get_logger("sampan.kubelet.x").info("pod terminated", pod="a/b", took_seconds=0.25, why="")
    assert lines()[0].endswith('kubelet.x: pod terminated pod=a/b took_seconds=0.25 why=""')


def test_a_value_with_a_line_break_stays_on_its_line(lines):
    log.get_logger("sampan.x").warning("odd", value='one\ntwo "three"')
    assert len(lines()) == 1
    assert lines()[0].endswith(r'odd value="one\ntwo \"three\""')


def test_what_is_not_printed_moves_no_cursor(lines):
    """A name in a request must not write a line of its own, nor hide one."""
    log.get_logger("sampan.x").warning("odd", value="a\rE 12:00\x1b[2K\u2028b\x85é")
    assert len(lines()) == 1
    assert lines()[0].endswith(r'odd value="a\rE 12:00\x1b[2K\u2028b\x85é"')


def test_what_is_below_the_level_is_not_written(lines):
    log.get_logger("sampan.x").debug("quiet")
    assert lines() == []


def test_a_bug_brings_its_traceback(lines):
    try:
        raise KeyError("lost")
    except KeyError as error:
        log.get_logger("sampan.x").bug("it broke", error)
    assert any("Traceback" in line for line in lines())


def failed(message):
    try:
        raise KeyError(message)
    except KeyError as error:
        return error


def test_the_same_failure_brings_its_traceback_once(lines):
    """Sixty lines a failure filled a disk; the line itself always comes."""
    logger = log.get_logger("sampan.x")
    for number in range(5):
        logger.bug("it broke again", failed(number))
    assert sum("Traceback" in line for line in lines()) == 1
    assert sum("it broke again" in line for line in lines()) == 5
    logger.bug("another broke", failed("x"))
    assert sum("Traceback" in line for line in lines()) == 2


WRITES = """
import sys
from sampan.core import log
log.MOST_BYTES = 100_000
log.set_up("info", own_file=sys.argv[1] if sys.argv[2:] == ["ours"] else "")
for number in range(5000):
    log.get_logger("sampan.x").info("a sentence of some length, as they are", number=number)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ours", [True, False])
def test_a_log_of_our_own_has_an_end(tmp_path, ours):
    """Somebody else's file, to which standard error was led, is not ours to empty."""
    file = tmp_path / "sampan.log"
    with file.open("a") as output:
        words = [sys.executable, "-c", WRITES, str(file), *(["ours"] if ours else [])]
        subprocess.run(words, stderr=output, check=True)
    last = file.read_text().splitlines()[-1]
    assert last.endswith("number=4999")
    older = tmp_path / "sampan.log.1"
    assert older.exists() == ours
    if ours:
        assert older.stat().st_mode & 0o777 == 0o600
        assert file.stat().st_size + older.stat().st_size < 400_000
    else:
        assert len(file.read_text().splitlines()) == 5000

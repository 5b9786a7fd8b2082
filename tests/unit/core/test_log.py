"""core/log.py: one event, one line, fields that can be parsed."""

import io
import logging

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

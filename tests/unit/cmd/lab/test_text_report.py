"""Reports as text."""

from sampan.cmd.lab.summary import report_of
from sampan.cmd.lab.text_report import lines
from tests.support.generators.lab_records import record


def test_a_report_says_it_all():
    text = "\n".join(lines([report_of(record(), "default")]))
    for said in ("4 pods: 2 succeeded, 1 pending, 1 preempted", "mean 25.0%, peak 50.0%",
                 "large 3", "1 (d): Insufficient cpu", "NodeResourcesFit", "80.0%"):  # fmt: skip
        assert said in text


def test_two_reports_are_compared():
    faster = {**record(), "seconds": 50.0}
    text = "\n".join(lines([report_of(record(), "a"), report_of(faster, "b")]))
    assert "=== compared" in text
    assert "-50.0%" in text
    assert "0 of 4 pods went elsewhere" in text


def test_no_message_moves_the_terminal():
    text = "\n".join(lines([report_of(record(why="\x1b[2Jgone\r"), "default")]))
    assert "\x1b" not in text
    assert "?[2Jgone?" in text

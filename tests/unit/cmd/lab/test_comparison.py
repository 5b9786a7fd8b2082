"""Two trials side by side."""

from sampan.cmd.lab.comparison import moved, rows
from sampan.cmd.lab.summary import report_of
from tests.support.generators.lab_records import record


def test_rows_have_both_figures():
    first, second = report_of(record(), "a"), report_of({**record(), "seconds": 50.0}, "b")
    found = {what: (here, there) for what, here, there, _ in rows(first, second)}
    assert found["seconds until the end"] == (100, 50)
    assert found["cpu utilisation"] == (0.25, 0.5)
    assert found["pods preempted"] == (1, 1)
    assert "pods failed" not in found, "there are none in either"


def test_who_went_elsewhere_is_counted_among_those_in_both():
    other = record()
    other["pods"][0]["node"] = "n-1"
    other["pods"][1]["name"] = "another"
    assert moved(report_of(record(), "a"), report_of(other, "b")) == (1, 3)

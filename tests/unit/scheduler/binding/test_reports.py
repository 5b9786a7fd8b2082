"""scheduler/binding/reports.py: what an event may say at most."""

from sampan.scheduler.binding.reports import NOTE_CHARACTERS, note


def test_a_long_finding_is_cut_and_says_so():
    assert note("0/1 nodes are available") == "0/1 nodes are available"
    assert note("x" * NOTE_CHARACTERS) == "x" * NOTE_CHARACTERS
    cut = note("x" * 2000)
    assert (len(cut), cut[-5:]) == (NOTE_CHARACTERS, "x ...")

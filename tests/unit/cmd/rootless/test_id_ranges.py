"""Which ids an ordinary user may give to containers."""

from sampan.cmd.rootless.id_ranges import as_lines, as_words, id_map, is_single

GRANTED = """
# a comment
somebody:1:2
ann:100000:65536
1001:300000:10
ann:x:1
ann:5:0
"""


def test_root_is_the_user_and_the_others_are_those_granted_to_name_or_number():
    ranges = id_map(1001, "ann", GRANTED)
    assert ranges == [(0, 1001, 1), (1, 100000, 65536), (65537, 300000, 10)]
    assert as_lines(ranges).splitlines()[1] == "1 100000 65536"
    assert as_words(ranges)[:6] == ["0", "1001", "1", "1", "100000", "65536"]


def test_who_is_granted_nothing_has_one_id():
    for text in ("", "somebody:1:2\n"):
        assert is_single(id_map(1001, "ann", text))
    assert is_single(id_map(1001, "", "::\n:1:2\n"))

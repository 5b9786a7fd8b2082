from sampan.client.by_identity import ByIdentity


def test_an_answer_is_of_the_very_value_and_of_no_equal_one():
    known: ByIdentity[list[int], str] = ByIdentity()
    first, equal = [1], [1]
    assert known.get(first) is None
    assert known.keep(first, "first") == "first"
    assert known.get(first) == "first"
    assert known.get(equal) is None


def test_what_is_remembered_is_bounded_and_never_of_another():
    known: ByIdentity[list[int], int] = ByIdentity(3)
    for number in range(100):
        value = [number]
        assert known.get(value) is None
        known.keep(value, number)
        assert len(known._known) <= 3

from sampan.core.http.unsent import Unsent


class Reader:
    def __init__(self, who, size):
        self.who, self.size, self.gone = who, size, False

    def unsent_bytes(self):
        return self.size

    def reader_is(self):
        return self.who

    def abort(self):
        self.gone = True


def test_who_holds_most_loses_its_oldest():
    unsent = Unsent(100)
    other = Reader("other", 30)
    many = [Reader("many", 10) for _ in range(20)]
    for reader in (*many[:3], other, *many[3:]):
        unsent.slow(reader)
    left = [reader for reader in many if not reader.gone]
    assert not other.gone
    assert left == many[-7:]


def test_who_has_caught_up_counts_no_more():
    unsent = Unsent(100)
    first, second = Reader("a", 90), Reader("b", 90)
    unsent.slow(first)
    unsent.caught_up(first)
    unsent.slow(second)
    assert not first.gone
    assert not second.gone


def test_a_single_one_is_left_alone():
    """Its answer is as large as it is: it is bounded by itself."""
    unsent, alone = Unsent(100), Reader("a", 1000)
    unsent.slow(alone)
    assert not alone.gone


def test_what_was_sent_meanwhile_counts_no_more():
    unsent = Unsent(100)
    first, second, third = Reader("a", 60), Reader("a", 30), Reader("b", 30)
    unsent.slow(first)
    unsent.slow(second)
    first.size = 20
    unsent.slow(third)
    assert not any(reader.gone for reader in (first, second, third))

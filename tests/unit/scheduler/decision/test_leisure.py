from sampan.scheduler.decision.leisure import (
    CROWD,
    DETAILED_AT_ONCE,
    DETAILED_PER_SECOND,
    Leisure,
)


def test_a_stream_of_pods_that_never_queue_up_has_details_of_some() -> None:
    """500 a second, each decided as it comes: no crowd ever waits."""
    leisure, taken = Leisure(), 0
    for number in range(5000):
        taken += leisure.take(0, 100.0 + number / 500)
    assert taken <= DETAILED_AT_ONCE + 10 * DETAILED_PER_SECOND
    assert taken >= 10 * DETAILED_PER_SECOND


def test_pods_that_come_now_and_then_have_all_details() -> None:
    leisure = Leisure()
    assert all(leisure.take(0, second / 5) for second in range(1000))


def test_in_a_crowd_there_is_none_and_it_uses_nothing_up() -> None:
    leisure = Leisure()
    assert not any(leisure.take(CROWD, 1.0) for _ in range(1000))
    assert all(leisure.take(CROWD - 1, 1.0) for _ in range(DETAILED_AT_ONCE))
    assert not leisure.take(0, 1.0)

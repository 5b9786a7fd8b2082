"""tests/support/processor_time.py: what somebody else left costs nobody else."""

import gc

import pytest

from tests.support.processor_time import quickest_seconds, spent


def test_the_collector_of_garbage_does_not_run_meanwhile_and_is_as_before_afterwards():
    collections = []
    gc.callbacks.append(lambda phase, about: collections.append(phase))
    try:
        with spent() as one:
            cycles = [[] for _ in range(50_000)]
            for cycle in cycles:
                cycle.append(cycle)
            assert collections == []
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()
    assert one.seconds > 0


def test_the_quickest_of_some_tries_counts_and_a_failure_is_passed_on():
    sizes = iter([300_000, 10, 300_000])
    assert quickest_seconds(lambda: sum(range(next(sizes)))) < 0.001
    with pytest.raises(ZeroDivisionError):
        quickest_seconds(lambda: 1 // 0)
    assert gc.isenabled()

"""What a probe's results add up to [N13]."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.probes.tally import (
    PERIOD_ANNOTATION,
    Kind,
    Probe,
    Tally,
    count,
    early_looks,
    first_due,
    is_settled,
    probes_of,
)


def probe(kind=Kind.READINESS, **words):
    return Probe(kind, {"tcpSocket": {"port": 1}}, **words)


def after(one, results):
    tally = Tally()
    for success in results:
        if is_settled(one, tally):
            break
        tally = count(one, tally, success)
    return tally


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_a_verdict_takes_as_many_equal_results_in_a_row_as_its_threshold(results, good, bad):
    one = probe(success_threshold=good, failure_threshold=bad)
    verdict, run, last = None, 0, None
    for success in results:
        run = run + 1 if success is last else 1
        last = success
        if run >= (good if success else bad):
            verdict = success
    assert after(one, results).verdict is verdict


def test_a_startup_probe_is_over_with_its_first_verdict():
    assert is_settled(probe(Kind.STARTUP), after(probe(Kind.STARTUP), [True]))
    assert is_settled(probe(Kind.STARTUP), after(probe(Kind.STARTUP), [False] * 3))
    assert not is_settled(probe(Kind.STARTUP), after(probe(Kind.STARTUP), [False] * 2))


def test_a_container_that_failed_its_liveness_is_not_asked_again():
    assert is_settled(probe(Kind.LIVENESS), after(probe(Kind.LIVENESS), [False] * 3))
    assert not is_settled(probe(Kind.LIVENESS), after(probe(Kind.LIVENESS), [True]))


def test_the_first_look_comes_after_the_delay():
    assert first_due(probe(delay_seconds=5), 100.0, 100.0, 0.9) == 105.0
    assert first_due(probe(), 100.0, 100.0, 0.9) == 101.0
    assert first_due(probe(period_seconds=0.2), 100.0, 100.0, 0.9) == 100.2


def test_containers_that_run_since_long_are_not_all_asked_at_once():
    assert first_due(probe(period_seconds=10), 100.0, 200.0, 0.5) == 205.0


def test_early_looks_are_for_success_only_and_not_with_a_delay():
    assert early_looks(probe(), 100.0, 100.0) == [100.1, 100.3, 100.6]
    assert early_looks(probe(), 100.0, 100.4) == [100.6]
    assert early_looks(probe(delay_seconds=1), 100.0, 100.0) == []
    assert early_looks(probe(Kind.LIVENESS), 100.0, 100.0) == []
    assert early_looks(Probe(Kind.STARTUP, {"exec": {}}), 100.0, 100.0) == [100.2]


def test_a_pod_may_ask_for_periods_below_a_second():
    container = {"name": "a", "readinessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 7}}
    pod = {"metadata": {"annotations": {f"{PERIOD_ANNOTATION}.a": "0.2"}}}
    assert [one.period_seconds for one in probes_of(pod, container)] == [0.2]
    other = {"metadata": {"annotations": {PERIOD_ANNOTATION: "soon"}}}
    assert [one.period_seconds for one in probes_of(other, container)] == [7.0]
    tiny = {"metadata": {"annotations": {PERIOD_ANNOTATION: "0.000001"}}}
    assert [one.period_seconds for one in probes_of(tiny, container)] == [0.05]

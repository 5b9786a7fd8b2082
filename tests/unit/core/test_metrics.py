"""core/metrics.py: Prometheus' text format."""

import pytest

from sampan.core.metrics import Metrics


def test_counters_gauges_and_histograms_are_rendered_as_prometheus_reads_them():
    metrics = Metrics()
    metrics.counter("requests_total", "Requests.", ["verb"]).add("GET", by=2)
    metrics.gauge("pods", "Pods.").set(3)
    histogram = metrics.histogram("took_seconds", "Took.", buckets=(0.1, 1))
    for value in (0.05, 0.1, 0.5, 7):
        histogram.observe(value)
    assert metrics.render().splitlines() == [
        "# HELP pods Pods.",
        "# TYPE pods gauge",
        "pods 3",
        "# HELP requests_total Requests.",
        "# TYPE requests_total counter",
        'requests_total{verb="GET"} 2',
        "# HELP took_seconds Took.",
        "# TYPE took_seconds histogram",
        'took_seconds_bucket{le="0.1"} 2',
        'took_seconds_bucket{le="1"} 3',
        'took_seconds_bucket{le="+Inf"} 4',
        "took_seconds_sum 7.65",
        "took_seconds_count 4",
    ]


def test_asking_for_a_name_again_gives_the_same_metric():
    metrics = Metrics()
    assert metrics.counter("a_total", "A.") is metrics.counter("a_total", "A.")
    with pytest.raises(AssertionError):
        metrics.gauge("a_total", "A.")


def test_a_gauge_can_be_read_when_it_is_scraped():
    metrics, values = Metrics(), {("a",): 1.0}
    metrics.gauge("size", "Size.", ["of"]).read_from(lambda: values)
    values[("a",)] = 5.0
    assert 'size{of="a"} 5' in metrics.render()


def test_label_values_are_escaped():
    metrics = Metrics()
    metrics.counter("odd_total", "Odd.", ["x"]).add('a"b\n')
    assert r'odd_total{x="a\"b\n"} 1' in metrics.render()


def test_counters_and_histograms_with_labels_begin_anew_and_gauges_stay():
    metrics = Metrics()
    metrics.counter("c", "C.", ("a",)).add("x")
    metrics.counter("whole", "W.").add()
    metrics.histogram("h", "H.", ("a",)).observe(1.0, "x")
    metrics.gauge("g", "G.", ("a",)).set(3.0, "x")
    metrics.reset()
    values = [line for line in metrics.render().splitlines() if not line.startswith("#")]
    assert values == ['g{a="x"} 3', "whole 1"]

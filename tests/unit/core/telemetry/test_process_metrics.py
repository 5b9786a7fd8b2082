from prometheus_client.parser import text_string_to_metric_families

from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.telemetry.process_metrics import add_process_metrics


def test_a_process_says_what_it_costs_and_what_it_is():
    metrics = Metrics()
    add_process_metrics(metrics, {"git_version": "v1.35.0", "platform": "linux/x"})
    found = {item.name: item for item in text_string_to_metric_families(metrics.render())}
    values = {name: item.samples[0].value for name, item in found.items()}
    assert found["process_cpu_seconds"].type == "counter"
    assert values["process_cpu_seconds"] > 0
    assert values["process_resident_memory_bytes"] > 1_000_000
    assert 3 <= values["process_open_fds"] <= values["process_max_fds"]
    # The machine counts in hundredths of a second, and knows its own start to a second.
    assert values["process_start_time_seconds"] > 1_700_000_000
    assert values["process_start_time_seconds"] <= SystemClock().now() + 2
    [built] = found["kubernetes_build_info"].samples
    assert built.labels == {"git_version": "v1.35.0", "platform": "linux/x"}

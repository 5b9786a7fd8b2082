"""How long containers ran, as a pod's trace has it."""

from dataclasses import replace

from sampan.core.telemetry.traces import Traces
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod
from sampan.kubelet.pods.run_spans import RunSpans
from tests.support.manual_clock import ManualClock

ENDED = ContainerStatus(
    "1", "s", "main", 0, ContainerState.EXITED, "image", "id", 1.0, 2.0, 5.0, 137, "OOMKilled"
)


def observed(*containers):
    return ObservedPod("u", "web", "default", (), containers)


def told(traces):
    found = traces.of("u")
    return [(span.name, span.began, span.ended, dict(span.facts)) for span in found.spans]


def test_a_container_that_ended_is_told_once_with_its_end():
    traces = Traces(ManualClock())
    runs = RunSpans(traces)
    running = replace(ENDED, id="2", state=ContainerState.RUNNING, attempt=1, finished_at=0.0)
    for _ in range(3):
        runs.note("u", observed(running, ENDED))
    assert told(traces) == [("main ran", 2.0, 5.0, {"exit code": "137", "error": "OOMKilled"})]


def test_one_that_never_started_has_no_run():
    traces = Traces(ManualClock())
    RunSpans(traces).note("u", observed(replace(ENDED, started_at=0.0)))
    RunSpans(traces).note("u", None)
    assert traces.of("u") is None


def test_a_command_that_ended_before_its_start_was_reported_has_a_run_of_no_length():
    traces = Traces(ManualClock())
    RunSpans(traces).note("u", observed(replace(ENDED, started_at=5.001)))
    [(name, began, ended, _)] = told(traces)
    assert (name, began, ended) == ("main ran", 5.0, 5.0)


def test_what_is_gone_from_the_runtime_and_forgotten_pods_cost_no_memory():
    runs = RunSpans(Traces(ManualClock()))
    runs.note("u", observed(ENDED))
    runs.note("u", observed())
    assert runs._noted == {}
    runs.forget("u")
    assert runs._noted == {}

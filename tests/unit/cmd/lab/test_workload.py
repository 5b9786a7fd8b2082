"""Workloads from files: what they become, and what is refused."""

import pytest

from sampan.api.configuration import BadConfiguration
from sampan.cmd.lab.workload import DEFAULT_UNTIL_SECONDS, Span, workload_of

HEAD = {"apiVersion": "simulated.sampan.dev/v1", "kind": "Workload"}


def test_streams_have_variants_of_what_they_say():
    found = workload_of({**HEAD, "seed": 3, "until": "2h", "streams": [{
        "name": "web", "count": 4, "poisson": "30s", "start": "5m", "kind": "Job",
        "duration": {"uniform": ["5m", "15m"]}, "requests": {"cpu": 1}, "priorityClassName": "high",
        "variants": [{"weight": 3}, {"weight": 1, "requests": {"cpu": "8"}, "duration": "never"}],
    }]})  # fmt: skip
    [stream] = found.streams
    assert (found.seed, found.until_seconds) == (3, 7200)
    assert (stream.gap, stream.start_seconds) == (Span("exponential", 30), 300)
    small, large = stream.variants
    assert (small.weight, small.requests, small.duration) == (
        3,
        {"cpu": "1"},
        Span("uniform", 300, 900),
    )
    assert (large.requests, large.duration, large.priority_class) == ({"cpu": "8"}, None, "high")


def test_recorded_pods_and_objects_are_taken_as_they_are():
    quota = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    pod = {"name": "a", "at": "12.5s", "duration": "30s", "template": {"spec": {"nodeName": "x"}}}
    found = workload_of({**HEAD, "objects": [quota], "pods": [pod]})
    [[resource, obj]] = found.objects
    assert (resource.plural, obj) == ("priorityclasses", quota)
    [recorded] = found.pods
    assert (recorded.at_seconds, recorded.duration_seconds) == (12.5, 30)
    assert found.until_seconds == DEFAULT_UNTIL_SECONDS


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        ({"name": "Web"}, r"streams\[0\].name"),
        ({"name": "w", "cuont": 1}, "unknown field"),
        ({"name": "w", "count": -1}, "no number"),
        ({"name": "w", "count": 10**7}, "no number"),
        ({"name": "w", "every": "1s", "poisson": "1s"}, "both say"),
        ({"name": "w", "every": "soon"}, r"streams\[0\].every"),
        ({"name": "w", "kind": "Deployment"}, "one of Pod, Job"),
        ({"name": "w", "duration": {"normal": 1}}, "unknown field"),
        ({"name": "w", "duration": {"uniform": ["5m"]}}, "LEAST, MOST"),
        ({"name": "w", "duration": {"uniform": ["5m", "1m"]}}, "more than the most"),
        ({"name": "w", "duration": "10000d"}, "at most a year"),
        ({"name": "w", "requests": {"cpu": "much"}}, "no quantity"),
        ({"name": "w", "requests": ["cpu"]}, "expected an object"),
        ({"name": "w", "template": {"status": {}}}, "unknown field"),
        ({"name": "w", "variants": [{"weight": 0}]}, "none has a weight"),
        ({"name": "w", "variants": [{"weight": "x"}]}, "no weight"),
        ({"name": "w", "namespace": "a/b"}, "namespace"),
        (3, "expected an object"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(stream, says):
    with pytest.raises(BadConfiguration, match=says):
        workload_of({**HEAD, "streams": [stream]})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "from 1 to"),
        ({"seed": "x"}, "seed"),
        ({"streams": [{"name": "a"}, {"name": "a"}]}, "several have the name a"),
        ({"pods": [{"name": "a"}, {"name": "a"}]}, "several have one name"),
        ({"objects": [{"apiVersion": "v9", "kind": "Boat"}]}, "v9 Boat is no kind"),
    ],
)
def test_a_whole_that_makes_no_sense_is_refused(more, says):
    with pytest.raises(BadConfiguration, match=says):
        workload_of({**HEAD, **more})

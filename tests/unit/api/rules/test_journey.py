import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.journey import (
    WAITING,
    advice_on,
    journey_document,
    journey_of,
    way_down_of,
)
from sampan.cmd.diagnosis import journey_text


def span(lane, name, began, ended, **facts):
    return {"lane": lane, "name": name, "began": began, "ended": ended, "parent": -1,
            "facts": facts}  # fmt: skip


def trace(*spans, dropped=0):
    return {"uid": "u", "spans": list(spans), "dropped": dropped}


POD = trace(
    span("apiserver", "create pods", 0.0, 0.010, phase="Pending"),
    span("apiserver", "store commit", 0.004, 0.009),
    span("scheduler", "queue", 0.011, 0.012),
    span("scheduler", "bind", 0.013, 0.020, node="n1"),
    span("kubelet", "sync pod", 0.022, 0.150),
    span("kubelet", "sandbox and network", 0.025, 0.100),
    span("kubelet", "start c", 0.110, 0.140),
    span("apiserver", "patch pods/status", 0.150, 0.160, phase="Running"),
    span("kubelet", "terminating pod", 5.0, 6.0),
)


def test_the_way_ends_where_the_api_was_first_told_of_running():
    journey = journey_of(POD)
    assert journey is not None
    assert (journey.began, journey.ended, journey.reached) == (0.0, 0.160, "Running")


def test_the_critical_path_is_the_innermost_work_of_each_moment():
    journey = journey_of(POD)
    assert journey is not None
    assert [(step.lane, step.name) for step in journey.critical] == [
        ("apiserver", "create pods"),
        ("apiserver", "store commit"),
        ("apiserver", "create pods"),
        (WAITING, "watch delivery to the scheduler"),
        ("scheduler", "queue"),
        (WAITING, WAITING),
        ("scheduler", "bind"),
        (WAITING, "watch delivery to the kubelet"),
        ("kubelet", "sync pod"),
        ("kubelet", "sandbox and network"),
        ("kubelet", "sync pod"),
        ("kubelet", "start c"),
        ("kubelet", "sync pod"),
        ("apiserver", "patch pods/status"),
    ]
    assert journey.slowest is not None
    assert journey.slowest.name == "sandbox and network"
    assert "network plugin" in advice_on(journey.slowest)


def test_parts_are_below_their_whole():
    journey = journey_of(POD)
    assert journey is not None
    depths = {step.name: step.depth for step in journey.steps}
    assert depths["store commit"] == 1
    assert depths["sandbox and network"] == depths["start c"] == 1
    assert depths["sync pod"] == depths["bind"] == 0


MOMENTS = st.integers(0, 1000).map(lambda number: number / 1000)
SPANS = st.lists(
    st.builds(
        lambda lane, name, one, other: span(lane, name, min(one, other), max(one, other)),
        st.sampled_from(["apiserver", "scheduler", "kubelet"]),
        st.sampled_from(["a", "b", "c"]),
        MOMENTS,
        MOMENTS,
    ),
    min_size=1,
    max_size=12,
)


@given(SPANS)
def test_the_critical_path_adds_up_to_the_whole_way_without_gaps(spans):
    journey = journey_of(trace(*spans))
    assert journey is not None
    at = journey.began
    for step in journey.critical:
        assert step.began == at
        assert step.ended > step.began
        at = step.ended
    assert at == journey.ended
    assert len(journey.steps) == len(spans)


def test_an_empty_trace_is_no_way():
    assert journey_of(trace()) is None


def test_the_waterfall_names_the_whole_the_steps_and_the_slowest():
    journey = journey_of(POD)
    assert journey is not None
    text = "\n".join(journey_text.waterfall("pod/web", journey))
    assert text.startswith("pod/web: create → Running in 160 ms")
    assert "bind (n1)" in text
    assert "  sandbox and network" in text
    assert "kubelet: sandbox and network, 75.0 ms" in text


def test_a_pod_that_never_ran_says_how_far_it_came():
    journey = journey_of(trace(*POD["spans"][:4], dropped=3))
    assert journey is not None
    lines = journey_text.waterfall("pod/web", journey)
    assert lines[0].startswith("pod/web: Pending 20.0 ms after its create; `sampan why pod/web`")
    assert "3 steps in between are not here: the trace was full." in lines
    assert "It stopped at: scheduler: bind (n1)." in lines


def test_nothing_that_others_wrote_moves_the_cursor():
    journey = journey_of(trace(span("kubelet", "image of \x1b[2Jweb", 0, 1, user="\r\x07evil")))
    assert journey is not None
    text = "\n".join(journey_text.waterfall("pod/web", journey))
    assert not any(ord(char) < 32 and char != "\n" for char in text)
    assert dict(journey.steps[0].facts)["user"] == "??evil"


def test_a_rollout_has_a_line_for_each_pod_on_one_axis():
    one, other = journey_of(POD), journey_of(trace(span("kubelet", "sync pod", 0.08, 0.32)))
    assert one is not None
    assert other is not None
    lines = journey_text.rollout("deployment/web", [("web-b", other), ("web-a", one)])
    assert lines[0] == "deployment/web: 2 pods in 320 ms"
    assert [line.split()[0] for line in lines[2:]] == ["web-a", "web-b"]
    assert journey_text.rollout("deployment/web", []) == [
        "deployment/web: no pod of it has a trace"
    ]


def test_where_it_stopped_is_the_last_step_that_failed():
    failed = span("kubelet", "image of c", 0.03, 0.04, error="ErrImagePull: no such host")
    journey = journey_of(trace(*POD["spans"][:6], failed, span("kubelet", "sync pod", 0.05, 0.06)))
    assert journey is not None
    text = "\n".join(journey_text.waterfall("pod/web", journey))
    assert "It stopped at: kubelet: image of c (ErrImagePull: no such host)." in text


PROBED = trace(
    *POD["spans"][:8],
    span("kubelet", "readiness probe of c", 0.140, 2.14, result="successful", looks="3"),
    span("apiserver", "patch pods/status", 2.15, 2.16, phase="Running", ready="True"),
)


def test_what_a_pod_waited_for_between_running_and_ready():
    journey = journey_of(PROBED)
    assert journey is not None
    assert (journey.ended, journey.ready) == (0.160, 2.16)
    text = "\n".join(journey_text.waterfall("pod/web", journey))
    assert text.startswith("pod/web: create → Running in 160 ms, Ready in 2160 ms")
    assert "From Running to Ready, 2000 ms:" in text
    assert "kubelet: readiness probe of c, 1980 ms" in text
    assert "a shorter periodSeconds notices sooner" in text


LIFE = trace(
    *POD["spans"][:8],
    span("kubelet", "c ran", 0.14, 3.0, **{"exit code": "1"}),
    span("kubelet", "back-off of c", 3.0, 13.0, restart="1"),
    span("apiserver", "delete pods", 20.0, 20.01, phase="Running"),
    span("kubelet", "terminating pod", 20.02, 21.1),
    span("kubelet", "stop c", 20.03, 21.03),
    span("kubelet", "remove volumes", 21.12, 21.13),
    span("apiserver", "delete pods", 21.14, 21.15),
)


def test_the_way_down_is_a_way_of_its_own():
    up, down = journey_of(LIFE), way_down_of(LIFE)
    assert up is not None
    assert down is not None
    assert (up.ended, down.began, down.ended) == (0.160, 20.0, 21.15)
    assert sum(step.seconds for step in down.critical) == down.seconds
    lines = journey_text.waterfall("pod/web", up, down)
    text = "\n".join(lines)
    assert "delete → gone in 1150 ms" in text
    assert "kubelet: stop c, 1000 ms" in text
    assert "does its first process act on SIGTERM?" in text
    later = lines[lines.index("Later:") :]
    assert "kubelet: back-off of c (restart 1)" in later[1]
    assert way_down_of(POD) is None


def test_a_container_that_ended_shows_with_what():
    journey = journey_of(LIFE)
    assert journey is not None
    assert "c ran (exit code 1)" in "\n".join(journey_text.waterfall("pod/web", journey))


def test_an_image_shows_how_much_was_pulled():
    pulled = span("kubelet", "image of c", 0.03, 0.04, bytes="12345", pulled="10ms")
    journey = journey_of(trace(*POD["spans"][:5], pulled))
    assert journey is not None
    text = "\n".join(journey_text.waterfall("pod/web", journey, everything=True))
    assert "image of c (pulled 12345 bytes)" in text


def test_ways_side_by_side_have_a_lane_each():
    one = journey_of(POD)
    assert one is not None
    both = journey_text.side_by_side([("b", one), ("a", one)])
    assert {step.lane for step in both.steps} == {"a", "b"}
    assert journey_text.side_by_side([]).steps == ()


def test_as_json_the_critical_path_is_the_same():
    journey, found = journey_of(POD), journey_document(POD)
    assert json.loads(json.dumps(found)) == found
    assert [(step["lane"], step["name"]) for step in found["critical"]] == [
        (step.lane, step.name) for step in journey.critical
    ]
    whole = sum(step["ended"] - step["began"] for step in found["critical"])
    assert whole == pytest.approx(found["ended"] - found["began"])
    assert (found["slowest"]["name"], found["reached"]) == ("sandbox and network", "Running")
    assert "network plugin" in found["slowest"]["advice"]
    assert found["stopped"] is None
    refused = span("scheduler", "filter and score", 0.2, 0.3, **{"refused by": "x"})
    pending = trace(span("apiserver", "create pods", 0.0, 0.1, phase="Pending"), refused)
    assert journey_document(pending)["stopped"]["name"] == "filter and score"
    assert journey_document(trace()) is None


def test_a_pod_of_before_the_api_servers_start_is_measured_from_its_start_again():
    journey = journey_of(
        trace(
            span("kubelet", "c ran", 0.0, 2300.0),
            span("kubelet", "back-off of c", 2300.0, 2310.0, restart="1"),
            span("kubelet", "sync pod", 2309.5, 2310.2),
            span("apiserver", "patch pods/status", 2310.2, 2310.3, phase="Running"),
        )
    )
    assert journey is not None
    assert (journey.began, journey.ended, journey.created) == (2309.5, 2310.3, False)
    head, *chart = journey_text.waterfall("pod/web", journey)
    assert head == "pod/web: start → Running in 800 ms"
    assert "c ran" not in "\n".join(chart)

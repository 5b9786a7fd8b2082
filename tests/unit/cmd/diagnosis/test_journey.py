from hypothesis import given
from hypothesis import strategies as st

from sampan.cmd.diagnosis import journey_text
from sampan.cmd.diagnosis.journey import WAITING, advice_on, journey_of


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
        (WAITING, WAITING),
        ("scheduler", "queue"),
        (WAITING, WAITING),
        ("scheduler", "bind"),
        (WAITING, WAITING),
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
    assert "3 later steps are not here: the trace was full." in lines


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

"""[N17] Which pods end when, as a machine goes down."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.metrics import Metrics
from sampan.kubelet.node.graceful_shutdown import NodeShutdown
from sampan.kubelet.node.shutdown_steps import (
    CRITICAL_PRIORITY,
    ShutdownStep,
    group_by_step,
    steps_of,
)
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

STEPS = (ShutdownStep(1000, 5.0), ShutdownStep(0, 20.0), ShutdownStep(CRITICAL_PRIORITY, 10.0))


def pod(name, priority=0, grace=30):
    spec = {"priority": priority, "terminationGracePeriodSeconds": grace}
    return {"metadata": {"name": name, "uid": name}, "spec": spec}


def names(groups):
    return [(step.priority, [one["metadata"]["name"] for one in pods]) for step, pods in groups]


def test_two_periods_are_two_steps():
    assert steps_of(30.0, 10.0) == (ShutdownStep(0, 20.0), ShutdownStep(CRITICAL_PRIORITY, 10.0))
    assert steps_of(0.0, 0.0) == ()


@pytest.mark.parametrize(
    ("priority", "step"),
    [(-5, 0), (0, 0), (999, 0), (1000, 1000), (1001, 1000), (CRITICAL_PRIORITY + 1000, 2 * 10**9)],
)
def test_a_pod_goes_with_the_highest_step_that_it_reaches(priority, step):
    found = names(group_by_step(STEPS, [pod("web", priority)]))
    assert [key for key, members in found if members] == [step]


@given(st.lists(st.integers(-(10**9), 2 * 10**9 + 1000)))
def test_everybody_goes_once_and_the_important_ones_last(priorities):
    groups = group_by_step(STEPS, [pod(str(number), one) for number, one in enumerate(priorities)])
    assert [step.priority for step, _ in groups] == sorted(step.priority for step in STEPS)
    gone = [one["spec"]["priority"] for _, pods in groups for one in pods]
    assert sorted(gone) == sorted(priorities)
    tops = [[one["spec"]["priority"] for one in pods] for _, pods in groups if pods]
    for before, after in itertools.pairwise(tops):
        assert max(before) < min(after)


class Workers:
    """Pods that take as long as they say to end."""

    def __init__(self, clock, takes):
        self.clock, self.takes, self.log, self.begun = clock, takes, [], {}

    def active_pods(self):
        return [pod(name, priority, grace) for name, (priority, grace, _) in self.takes.items()]

    def kill(self, uid, grace_seconds, cause, verdict=None):
        self.begun[uid] = self.clock.monotonic()
        self.log.append((round(self.clock.monotonic()), uid, grace_seconds, verdict.reason))

    async def ended(self, uids):
        ends = [self.begun[uid] + self.takes[uid][2] for uid in uids]
        await self.clock.sleep(max(ends) - self.clock.monotonic())


def test_a_group_begins_when_the_one_before_has_ended_or_its_time_is_over():
    async def story():
        clock, metrics, told = LoopClock(), Metrics(), []
        workers = Workers(clock, {
            "slow": (0, 300, 100), "quick": (0, 3, 1),
            "better": (1000, 30, 2), "critical": (CRITICAL_PRIORITY, 4, 1),
        })  # fmt: skip
        down = NodeShutdown(
            STEPS, workers, begins=lambda: told.append("begins"), all_told=lambda: True,
            clock=clock, metrics=metrics,
        )  # fmt: skip
        await down.run()
        assert told == ["begins"]
        assert workers.log == [
            (0, "slow", 20.0, "Terminated"), (0, "quick", 3.0, "Terminated"),
            (20, "better", 5.0, "Terminated"), (22, "critical", 4.0, "Terminated"),
        ]  # fmt: skip
        assert clock.monotonic() == pytest.approx(23)
        text = metrics.render()
        begin, end = clock.now() - 23, clock.now()
        assert f"kubelet_graceful_shutdown_start_time_seconds {begin:.0f}" in text
        assert f"kubelet_graceful_shutdown_end_time_seconds {end:.0f}" in text

    virtual_time.run(story())


def test_without_steps_nothing_happens():
    async def story():
        clock = LoopClock()
        workers = Workers(clock, {"web": (0, 30, 1)})
        down = NodeShutdown((), workers, begins=lambda: None, all_told=lambda: False,
                            clock=clock, metrics=Metrics())  # fmt: skip
        await down.run()
        assert workers.log == []

    virtual_time.run(story())

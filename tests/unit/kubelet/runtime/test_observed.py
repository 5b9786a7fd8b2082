import asyncio
from dataclasses import replace

from sampan.kubelet.contracts.runtime import ContainerState, RuntimeEvent
from sampan.kubelet.runtime.observed import REMEMBERED_EXITS, Observations
from sampan.testing.worlds.observed_pods import UID, container, exited, observed


class Slow:
    """A runtime that answers what it is told to, however stale."""

    def __init__(self, answer):
        self.answer = answer

    async def pod(self, uid):
        return self.answer

    async def pods(self):
        return [self.answer] if self.answer else []


def test_an_exit_that_an_event_told_of_is_trusted_until_the_runtime_admits_it():
    """[R2]"""
    runtime = Slow(observed(container()))
    seen = Observations(runtime)
    seen.note(RuntimeEvent(UID, "main-0", exit_code=3, exited_at=5.0))
    one = asyncio.run(seen.pod(UID)).containers[0]
    assert (one.state, one.exit_code, one.finished_at) == (ContainerState.EXITED, 3, 5.0)
    runtime.answer = observed(replace(exited(exit_code=3), message="from the runtime"))
    assert asyncio.run(seen.pod(UID)).containers[0].message == "from the runtime"


def test_only_what_changed_since_the_last_look_is_named():
    runtime = Slow(observed(container()))
    seen = Observations(runtime)
    assert asyncio.run(seen.changed())[0] == [UID]
    assert asyncio.run(seen.changed())[0] == []
    runtime.answer = observed(exited())
    assert asyncio.run(seen.changed())[0] == [UID]
    runtime.answer = None
    assert asyncio.run(seen.changed())[0] == [UID]


def test_what_a_step_has_seen_is_not_a_change():
    runtime = Slow(observed(container()))
    seen = Observations(runtime)
    asyncio.run(seen.pod(UID))
    assert asyncio.run(seen.changed())[0] == []


def test_a_pod_is_new_only_when_everything_was_looked_at_once():
    seen = Observations(Slow(None))
    assert not seen.never_had(UID)
    asyncio.run(seen.changed())
    assert seen.never_had(UID)


def test_remembered_exits_are_bounded():
    seen = Observations(Slow(None))
    for number in range(REMEMBERED_EXITS + 10):
        seen.note(RuntimeEvent(UID, f"c-{number}", exit_code=0))
    assert len(seen._exits) == REMEMBERED_EXITS


def test_running_things_are_counted():
    seen = Observations(Slow(observed(container(), exited("other"))))
    asyncio.run(seen.pod(UID))
    assert seen.count().sandboxes == 1
    assert seen.count().containers == {"running": 1, "exited": 1}


def test_an_event_about_what_a_step_has_seen_is_no_news():
    seen = Observations(Slow(observed(container())))
    running = RuntimeEvent(UID, "main-0", state=ContainerState.RUNNING)
    assert seen.is_news(running), "nothing was seen yet"
    asyncio.run(seen.pod(UID))
    assert not seen.is_news(running)
    assert not seen.is_news(replace(running, state=ContainerState.CREATED))
    assert seen.is_news(replace(running, state=ContainerState.EXITED))
    assert seen.is_news(replace(running, container_id="main-1"))
    assert seen.is_news(replace(running, state=None)), "the runtime did not say"

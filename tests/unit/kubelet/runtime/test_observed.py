import asyncio
from dataclasses import replace

from sampan.kubelet.contracts.runtime import ContainerState, RuntimeEvent
from sampan.kubelet.runtime.observed import Observations
from tests.support.worlds.observed_pods import UID, container, exited_container, observed_pod


class Slow:
    """A runtime that answers what it is told to, however stale."""

    def __init__(self, answer):
        self.answer = answer

    async def pod(self, uid):
        return self.answer

    async def pods(self):
        return [self.answer] if self.answer else []


def test_only_what_changed_since_the_last_look_is_named():
    runtime = Slow(observed_pod(container()))
    seen = Observations(runtime)
    assert asyncio.run(seen.changed())[0] == [], "it was found, not changed"
    assert seen.last_seen(UID) == runtime.answer
    assert asyncio.run(seen.changed())[0] == []
    runtime.answer = observed_pod(exited_container())
    assert asyncio.run(seen.changed())[0] == [UID]
    runtime.answer = None
    assert asyncio.run(seen.changed())[0] == [UID]


def test_what_a_step_has_seen_is_not_a_change():
    runtime = Slow(observed_pod(container()))
    seen = Observations(runtime)
    asyncio.run(seen.pod(UID))
    assert asyncio.run(seen.changed())[0] == []


def test_a_pod_is_new_only_when_everything_was_looked_at_once():
    seen = Observations(Slow(None))
    assert not seen.never_had(UID)
    asyncio.run(seen.changed())
    assert seen.never_had(UID)


def test_running_things_are_counted():
    seen = Observations(Slow(observed_pod(container(), exited_container("other"))))
    asyncio.run(seen.pod(UID))
    assert seen.count().sandboxes == 1
    assert seen.count().containers == {"running": 1, "exited": 1}


def test_an_event_about_what_a_step_has_seen_is_no_news():
    seen = Observations(Slow(observed_pod(container())))
    running = RuntimeEvent(UID, "main-0", state=ContainerState.RUNNING)
    assert seen.is_news(running), "nothing was seen yet"
    asyncio.run(seen.pod(UID))
    assert not seen.is_news(running)
    assert not seen.is_news(replace(running, state=ContainerState.CREATED))
    assert seen.is_news(replace(running, state=ContainerState.EXITED))
    assert seen.is_news(replace(running, container_id="main-1"))
    assert seen.is_news(replace(running, state=None)), "the runtime did not say"

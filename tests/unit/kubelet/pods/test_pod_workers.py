"""[N7] one step at a time, the newest wish first."""

import asyncio
import random

from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, finish
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.pods.pod_state import Cause, Phase
from sampan.kubelet.pods.pod_workers import End, Outcome, PodWorkers
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.simulated_node import pod_named


class Slow:
    """Steps that take a second each and can be told what to answer."""

    def __init__(self):
        self.log = []
        self.running = 0
        self.answers = {}

    async def _step(self, word, job):
        assert self.running == 0 or job.pod["metadata"]["name"] == "other"
        self.running += 1
        try:
            self.log.append(word)
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            self.log.append(f"{word} interrupted")
            raise
        finally:
            self.running -= 1
        answers = self.answers.get(word) or [Outcome()]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def sync(self, job):
        return await self._step(f"sync {job.pod['spec'].get('v', 0)}", job)

    async def terminate(self, job):
        return await self._step(f"terminate {job.worker.grace_seconds:g}", job)

    async def clean_up(self, job):
        return await self._step("clean up all" if job.gone else "clean up", job)


def pod(uid="1", name="web", v=0):
    made = pod_named(name, v=v)
    made["metadata"]["uid"] = uid
    return made


def told(story):
    async def run():
        steps, tasks = Slow(), Tasks("test")
        workers = PodWorkers(
            tasks=tasks, clock=LoopClock(), metrics=Metrics(), rng=random.Random(1)
        )
        workers.steps = steps
        await story(workers, steps)
        workers.close()
        await tasks.stop()

    virtual_time.run(run())


def test_updates_during_a_step_make_one_further_step_with_the_newest():
    async def story(workers, steps):
        workers.want(pod(), 0)
        await asyncio.sleep(0.5)
        for v in (1, 2, 3):
            workers.want(pod(v=v), 0)
        await asyncio.sleep(10)
        assert steps.log == ["sync 0", "sync 3"]

    told(story)


def test_a_kill_interrupts_the_sync_and_the_way_down_follows_at_once():
    async def story(workers, steps):
        workers.want(pod(), 0)
        await asyncio.sleep(0.5)
        workers.kill("1", 30, Cause.DELETED)
        workers.remove("1", 30)
        await asyncio.sleep(10)
        assert steps.log == ["sync 0", "sync 0 interrupted", "terminate 30", "clean up all"]
        assert "1" not in workers

    told(story)


def test_a_shorter_grace_interrupts_a_longer_wait_but_not_the_other_way():
    async def story(workers, steps):
        workers.want(pod(), 0, End(Cause.DELETED, 30))
        await asyncio.sleep(0.1)
        workers.kill("1", 60, Cause.EVICTED)
        await asyncio.sleep(0.1)
        workers.kill("1", 5, Cause.EVICTED)
        await asyncio.sleep(10)
        assert steps.log == [
            "terminate 30",
            "terminate 30 interrupted",
            "terminate 5",
            "clean up",
        ]
        assert workers.phase("1") is Phase.FINISHED

    told(story)


def test_a_failed_step_is_repeated_with_growing_pauses():
    async def story(workers, steps):
        steps.answers["sync 0"] = [Outcome(failed=True)] * 3 + [Outcome()]
        workers.want(pod(), 0)
        await asyncio.sleep(60)
        assert steps.log == ["sync 0"] * 4
        assert workers.is_idle()

    told(story)


def test_what_a_failing_step_missed_is_looked_at_without_a_pause():
    """[N15] the config map appears while the step that did not find it still runs"""

    async def story(workers, steps):
        steps.answers["sync 0"] = [Outcome(failed=True), Outcome()]
        workers.want(pod(), 0.0)
        await asyncio.sleep(0.5)
        workers.wake("1")  # what happened to containers does not make a failing step hurry
        workers.retry("1")
        await asyncio.sleep(0.6)
        assert steps.log == ["sync 0", "sync 0"]

    told(story)


def test_a_terminal_sync_ends_the_pod_and_keeps_it_until_it_is_removed():
    async def story(workers, steps):
        steps.answers["sync 0"] = [Outcome(terminal=True)]
        workers.want(pod(), 0)
        await asyncio.sleep(10)
        assert steps.log == ["sync 0", "terminate 30", "clean up"]
        assert workers.active_pods() == []
        workers.wake("1")
        await asyncio.sleep(10)
        assert len(steps.log) == 3
        workers.remove("1", 30)
        await asyncio.sleep(10)
        assert steps.log[3:] == ["clean up all"]
        assert len(workers) == 0

    told(story)


def test_a_refused_pod_is_never_synced_and_holds_nothing():
    async def story(workers, steps):
        workers.want(pod(), 0, End(Cause.REJECTED, 30, Verdict("OutOfcpu", "")))
        assert workers.active_pods() == []
        await asyncio.sleep(10)
        assert steps.log == ["terminate 30", "clean up"]

    told(story)


def test_two_pods_of_one_name_never_sync_together():
    async def story(workers, steps):
        workers.want(pod("1"), 0)
        await asyncio.sleep(2)
        workers.want(pod("2", v=9), 0)
        await asyncio.sleep(2)
        assert workers.phase("2") is Phase.WAITING
        workers.remove("1", 5)
        await asyncio.sleep(10)
        assert steps.log == ["sync 0", "terminate 5", "clean up all", "sync 9"]

    told(story)


def test_a_wish_for_later_is_kept_and_an_earlier_event_goes_before_it():
    async def story(workers, steps):
        steps.answers["sync 0"] = [Outcome(wake_after=100)]
        workers.want(pod(), 0)
        await asyncio.sleep(50)
        assert steps.log == ["sync 0"]
        await asyncio.sleep(60)
        assert steps.log == ["sync 0"] * 2
        workers.wake("1")
        await asyncio.sleep(10)
        assert steps.log == ["sync 0"] * 3

    told(story)


def test_a_static_pod_recreated_while_it_ends_starts_afterwards():
    async def story(workers, steps):
        workers.want(pod(), 0)
        await asyncio.sleep(2)
        workers.remove("1", 5)
        await asyncio.sleep(0.5)
        workers.want(pod(v=1), 0)
        await asyncio.sleep(10)
        assert steps.log == ["sync 0", "terminate 5", "clean up all", "sync 1"]

    told(story)


def test_an_orphan_is_ended_and_forgotten():
    async def story(workers, steps):
        workers.adopt_orphan(pod(), 1)
        assert list(workers.pods()) == []
        await asyncio.sleep(10)
        assert steps.log == ["terminate 1", "clean up all"]
        assert len(workers) == 0

    told(story)


def test_a_step_whose_call_goes_on_is_waited_for_however_often_the_pod_is_killed():
    """The runtime goes on with a start that nobody wants any more: the way down comes after it."""

    class Patient(Slow):
        async def sync(self, job):
            self.log.append("sync")
            await finish(asyncio.sleep(5))

    async def run():
        steps, tasks = Patient(), Tasks("test")
        workers = PodWorkers(
            tasks=tasks, clock=LoopClock(), metrics=Metrics(), rng=random.Random(1)
        )
        workers.steps = steps
        workers.want(pod(), 0)
        for grace in (30, 10, 2):
            await asyncio.sleep(1)
            workers.kill("1", grace, Cause.DELETED)
        await asyncio.sleep(1)
        assert steps.log == ["sync"]
        await asyncio.sleep(1.5)
        assert steps.log == ["sync", "terminate 2"]
        workers.close()
        await tasks.stop()

    virtual_time.run(run())

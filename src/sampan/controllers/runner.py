"""The only loop of the controllers: a change wakes a key, a key is planned, the plan is performed.

Job: informers → keyed queue → plan → perform, for each controller apart; retries and expectations.
Invariant: one key of one controller is worked on by one worker at a time.
Invariant: a key is not planned before the caches show what its last plan wrote; where they caught
    up by a new list, which tells of no change in between, it is planned once more.
Invariant: whatever a controller raises stops neither another controller nor another key.
Owner: cmd/ builds one runner per process; with nothing to do it does nothing.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sampan.api.errors import ApiError, Conflict
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.rules.aspects import interest_of, looks_at
from sampan.client.cache_sync import caches_of
from sampan.client.contract import Client
from sampan.client.events import EventRecorder
from sampan.client.indexer import Cache
from sampan.client.informer import Informer, Informers, Listener
from sampan.controllers.actions import Outcome, Patch, Plan, next_step
from sampan.controllers.controller import Caches, Controller, Key, Later, View, Wake
from sampan.controllers.expectations import Expectation, expectation, is_met
from sampan.controllers.perform import perform
from sampan.controllers.sync_failures import SyncFailures
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of
from sampan.core.workqueue import WorkQueue

log = get_logger(__name__)

MANAGER = "kube-controller-manager"  # as the metrics name it

# As client-go's default rate limiter: 5 ms doubling; upstream caps at 1000 s, we look sooner.
RETRY = Backoff(first_seconds=0.005, cap_seconds=60.0)
# The caches' own events end a wait; this is for the case that a relist swallowed them.
LOOK_AGAIN_SECONDS = 1.0
# A key whose plan takes long (thousands of pods) rests this many times as long, and once as long as
# its writes took: a burst of changes is then planned once, not once per change.
REST_FACTOR = 4.0
SHORTEST_REST_SECONDS = 0.002
TURN_SECONDS = 0.001  # after which a worker lets others have the loop; there may be dozens of them
LONGEST_REST_SECONDS = 0.5
# A thousand Jobs at once have several thousand things to tell.
EVENTS_WAITING = 10_000
# What is remembered about keys is looked through when it has grown to this, or doubled since.
PRUNE_AT = 1000
SETTLING_SECONDS = 0.005  # between two looks whether all is done


class PlanFailed(Exception):
    """An action of a plan failed; the key is tried again."""

    def __init__(self, errors: Sequence[ApiError]) -> None:
        super().__init__("; ".join(error.message for error in errors[:3]))
        self.only_conflicts = all(isinstance(error, Conflict) for error in errors)


class ControllerRunner:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        metrics: Metrics,
        controllers: Sequence[Controller],
        rng: random.Random | None = None,
        acting_as: Callable[[str], Client] | None = None,
    ) -> None:
        """`acting_as`: a controller's name → the client it writes with; without it, `client`."""
        rng = rng or random.Random()
        self._informers, self._clock = informers, clock
        self._loops = [
            _Loop(
                controller,
                acting_as(controller.name) if acting_as else client,
                informers,
                clock,
                metrics,
                rng,
            )
            for controller in controllers
        ]
        running = metrics.gauge(
            "running_managed_controllers",
            "Indicates where instances of a controller are currently running",
            ("name", "manager"),
        )
        running.read_from(
            lambda: {(loop.name, MANAGER): float(loop.is_running) for loop in self._loops}
        )
        depth = metrics.gauge("workqueue_depth", "Current depth of the workqueue.", ("name",))
        depth.read_from(lambda: {(loop.name,): float(loop.depth()) for loop in self._loops})
        metrics.read_counter(
            "workqueue_adds_total",
            "Total number of adds handled by workqueue",
            lambda: {(loop.name,): float(loop.added()) for loop in self._loops},
            ("name",),
        )

    async def run(self) -> None:
        """Until cancelled."""
        self._informers.start()
        await all_of(loop.run() for loop in self._loops)

    async def answered(self) -> None:
        """Whatever the server shows is in the caches."""
        await self._informers.answered()

    def idle(self) -> bool:
        """Nothing is queued or in work anywhere (what waits for its time does not count)."""
        return all(loop.idle() for loop in self._loops)

    async def settled(self) -> None:
        """Whatever the server shows now has been dealt with."""
        await self.answered()
        while not self.idle():
            await self._clock.sleep(SETTLING_SECONDS)
            await self.answered()


class _Loop:
    """One controller at work."""

    def __init__(
        self,
        controller: Controller,
        client: Client,
        informers: Informers,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random,
    ) -> None:
        self._controller, self._client = controller, client
        self._shared = informers
        self._clock, self._rng = clock, rng
        waited = metrics.histogram(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested.",
            ("name",),
        )
        self._queue: WorkQueue[Key] = WorkQueue(
            RETRY, lambda seconds: waited.observe(seconds, controller.name)
        )
        self._expected: dict[Key, list[Expectation]] = {}
        self._waiting: dict[Resource, set[Key]] = {}
        self._relists: Counter[Resource] = Counter()
        self._rested_at: dict[Key, float] = {}
        self._prune_at = PRUNE_AT
        self._recorder = EventRecorder(
            client, controller.component, clock=clock, rng=rng, bound=EVENTS_WAITING
        )
        self._failures = SyncFailures(
            controller.name, controller.wakes, self._lookup, self._recorder
        )
        self.is_running = False  # it has what it needs, and its workers are there
        self._informers: dict[Resource, Informer] = {}
        self._heard: dict[Resource, Listener] = {}
        for resource in {*controller.wakes, *controller.indices}:
            indices = controller.indices.get(resource)
            self._informers[resource] = informers.of(resource, indices=indices)
            for name, function in controller.tallies.get(resource, {}).items():
                self._informers[resource].cache.add_tally(name, function)
        self._work = metrics.histogram(
            "workqueue_work_duration_seconds",
            "How long processing an item from the workqueue takes.",
            ("name",),
        )
        self._counting = None if controller.counted is None else controller.counted(metrics)
        self._retries = metrics.counter(
            "workqueue_retries_total", "Retries handled by the workqueue.", ("name",)
        )

    @property
    def name(self) -> str:
        return self._controller.name

    def depth(self) -> int:
        return len(self._queue)

    def added(self) -> int:
        return self._queue.added

    def idle(self) -> bool:
        return self._queue.idle() and self._recorder.idle()

    async def run(self) -> None:
        for resource in self._informers:
            wake = self._controller.wakes.get(resource, _nobody)
            self._listen(resource, wake)
        for resource, brought in self._controller.brings.items():
            self._informers[resource].on_change(self._follower(brought))
        optional = set(self._controller.optional)
        await caches_of(
            self.name,
            [item for resource, item in self._informers.items() if resource not in optional],
            [item for resource, item in self._informers.items() if resource in optional],
        )
        for key in self._controller.at_start:
            self._queue.add(key)
        tasks = Tasks(self._controller.name)
        tasks.supervise("events", self._recorder.run)
        workers = [
            tasks.start(f"worker {number}", self._worked())
            for number in range(self._controller.workers)
        ]
        self.is_running = True
        try:
            for worker in workers:
                await worker
        finally:
            self.is_running = False
            self._queue.close()
            await tasks.stop()

    def _listen(self, resource: Resource, wake: Wake) -> None:
        informer, heard = self._informers[resource], self._listener(wake)
        self._heard[resource] = heard
        informer.on_change(heard, interest_of(wake))
        informer.on_relist(partial(self._look_again, resource))

    def _listener(self, wake: Wake) -> Listener:
        def heard(old: Obj | None, new: Obj | None) -> None:
            for key in wake(self._cache, old, new):
                if isinstance(key, Later):
                    self._queue.add_after(key.key, key.seconds)
                else:
                    self._queue.add(key)

        return heard

    def _cache_moved(self, resource: Resource) -> None:
        """Those who wait for what they wrote look whether it is there."""
        for key in self._waiting.pop(resource, ()):
            self._queue.add(key)

    def _look_again(self, resource: Resource) -> None:
        """What a plan made may be gone again before any cache saw it; then no change tells."""
        self._relists[resource] += 1
        for key, expected in self._expected.items():
            if any(item.resource == resource for item in expected):
                self._queue.add(key)

    def _follower(self, brought: Callable[[Obj], Mapping[Resource, Wake]]) -> Listener:
        def heard(old: Obj | None, new: Obj | None) -> None:
            wakes = brought(new) if new is not None else {}
            for resource, wake in wakes.items():
                if resource not in self._informers:
                    log.info(
                        "watching a custom resource",
                        controller=self.name,
                        kind=resource.group_resource,
                    )
                    self._informers[resource] = self._shared.of(resource)
                    self._listen(resource, wake)
            for resource in (brought(old) if old is not None else {}).keys() - wakes.keys():
                informer = self._informers.pop(resource, None)
                if informer is not None:
                    informer.remove(self._heard.pop(resource))
                    self._waiting.pop(resource, None)
                    self._shared.release(resource)

        return heard

    async def _worked(self) -> None:
        name, turn_began = self._controller.name, self._clock.monotonic()
        while True:
            if self._clock.monotonic() - turn_began > TURN_SECONDS:
                # Thousands of keys for which nothing is to be done need no pause of themselves.
                await asyncio.sleep(0)
                turn_began = self._clock.monotonic()
            key = await self._queue.get()
            started = self._clock.monotonic()
            try:
                if self._has_rested(key) and self._has_caught_up(key):
                    await self._reconciled(key)
            except PlanFailed as error:
                self._retry(key, error)
            except ApiError as error:
                self._retry(key, error)
            except Exception as error:
                self._retry(key, None)
                await self._mark(self._failures.failed(key, error, self._clock.now()))
            finally:
                self._queue.done(key)
                self._work.observe(self._clock.monotonic() - started, name)

    async def _reconciled(self, key: Key) -> None:
        started, relists = self._clock.monotonic(), self._relists.copy()
        view = View(self._cache, self._client, self._clock.now(), self._rng, self._is_synced)
        note = None if self._counting is None else self._counting(self._cache, key)
        plan: Plan = await self._controller.planned(view, key)
        planned = self._clock.monotonic()
        outcomes = await self._performed(plan)
        if note is not None:
            note(outcomes, self._clock.monotonic() - started)
        writing = 0.0 if plan.unfinished else self._clock.monotonic() - planned
        self._rest(key, REST_FACTOR * (planned - started) + writing)
        self._expect(key, outcomes)
        if self._relists != relists:
            self._queue.add(key)  # what we wrote may have come and gone between two lists
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            raise PlanFailed(errors)
        self._queue.forget(key)
        await self._mark(self._failures.succeeded(key))
        if plan.again_seconds is not None:
            self._queue.add_after(key, plan.again_seconds)

    async def _mark(self, patch: Patch | None) -> None:
        """Where it cannot be written, the event and the log have told."""
        if patch is not None:
            await perform([patch], self._client, self._recorder)

    async def _performed(self, plan: Plan) -> list[Outcome]:
        outcomes: list[Outcome] = []
        step: Plan | None = plan
        while step is not None:
            done = await perform(step.actions, self._client, self._recorder, apart=step.apart)
            outcomes += done
            step = next_step(step, done)
        return outcomes

    def _rest(self, key: Key, seconds: float) -> None:
        if seconds >= SHORTEST_REST_SECONDS:
            rest = min(seconds, LONGEST_REST_SECONDS)
            self._rested_at[key] = self._clock.monotonic() + rest

    def _has_rested(self, key: Key) -> bool:
        left = self._rested_at.get(key, 0.0) - self._clock.monotonic()
        if left > 0:
            self._queue.add_after(key, left)
            return False
        self._rested_at.pop(key, None)
        return True

    def _retry(self, key: Key, error: Exception | None) -> None:
        seconds = self._queue.retry(key)
        self._retries.add(self._controller.name)
        if error is None or (isinstance(error, PlanFailed) and error.only_conflicts):
            return  # told already, or the ordinary case of somebody else having written first
        log.info(
            "sync failed, trying again",
            controller=self._controller.name,
            key=key,
            in_seconds=seconds,
            error=error,
        )

    def _expect(self, key: Key, outcomes: Sequence[Outcome]) -> None:
        now = self._clock.monotonic()
        expected = [expectation(outcome, now) for outcome in outcomes]
        # What no informer of ours shows cannot be waited for.
        seen = [item for item in expected if item is not None and item.resource in self._informers]
        if seen:
            self._expected[key] = seen
            self._prune(now)

    def _prune(self, now: float) -> None:
        """Forget keys that never came back: objects that are gone, as a rule."""
        if len(self._expected) < self._prune_at:
            return
        self._expected = {
            key: unmet
            for key, expected in self._expected.items()
            if (unmet := [item for item in expected if not self._is_met(item, now)])
        }
        self._rested_at = {key: at for key, at in self._rested_at.items() if at > now}
        self._prune_at = max(PRUNE_AT, 2 * len(self._expected))

    def _is_met(self, item: Expectation, now: float) -> bool:
        return is_met(item, self._revision, self._lookup, now)

    def _has_caught_up(self, key: Key) -> bool:
        expected = self._expected.get(key)
        if expected is None:
            return True
        now = self._clock.monotonic()
        # What is met is met for good, so each is looked at until it is, not at every change.
        while expected and self._is_met(expected[-1], now):
            expected.pop()
        if not expected:
            del self._expected[key]
            return True
        resource = expected[-1].resource
        if resource not in self._waiting:
            self._waiting[resource] = set()
            self._informers[resource].at_next_change(partial(self._cache_moved, resource))
        self._waiting[resource].add(key)
        self._queue.add_after(key, LOOK_AGAIN_SECONDS)
        return False

    def _cache(self, resource: Resource) -> Cache:
        return self._informers[resource].cache

    def _is_synced(self, resource: Resource) -> bool:
        informer = self._informers.get(resource)
        return informer is not None and informer.is_synced()

    def _revision(self, resource: Resource) -> int:
        return self._informers[resource].revision

    def _lookup(self, resource: Resource, key: str) -> Obj | None:
        return self._informers[resource].cache.get(key)


@looks_at(0)
def _nobody(_caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[Key]:
    """Changes of what is only looked up wake nobody, but may end somebody's wait."""
    return ()

import asyncio

from sampan.api.errors import Forbidden, ServiceUnavailable, already_exists, not_found
from sampan.client.events import AT_ONCE, ATTEMPTS, QUEUE_BOUND, EventRecorder, reference
from sampan.core.tasks import Tasks
from tests.support import virtual_time

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "ns", "name": "web", "uid": "u", "resourceVersion": "7"},
}


class EventApi:
    """Takes events; fails as told."""

    def __init__(self):
        self.events = {}
        self.failures = []
        self.calls = 0

    def _called(self):
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)

    async def create(self, resource, obj, namespace="", *, subresource="", name=""):
        self._called()
        self.events[obj["metadata"]["name"]] = obj
        return obj

    async def patch(
        self, resource, namespace, name, patch, *, patch_type="strategic", subresource=""
    ):
        self._called()
        if name not in self.events:
            raise not_found("events", "", name)
        self.events[name] = {**self.events[name], **patch}
        return self.events[name]


def recorded(story):
    async def run():
        api = EventApi()
        recorder = EventRecorder(api, "kubelet", clock=virtual_time.LoopClock(), host="n1")
        tasks = Tasks("test")
        tasks.start("events", recorder.run())
        try:
            await story(api, recorder)
        finally:
            await tasks.stop()

    virtual_time.run(run())


def test_an_event_has_upstreams_fields():
    async def story(api, recorder):
        recorder.record(reference(POD, "spec.containers{c}"), "Normal", "Started", "it started")
        await asyncio.sleep(1)
        [event] = api.events.values()
        name = event["metadata"].pop("name")
        assert name == f"web.{1_700_000_000 * 10**9:x}"
        assert event == {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": "ns"},
            "involvedObject": {
                "kind": "Pod",
                "apiVersion": "v1",
                "namespace": "ns",
                "name": "web",
                "uid": "u",
                "resourceVersion": "7",
                "fieldPath": "spec.containers{c}",
            },
            "reason": "Started",
            "message": "it started",
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2023-11-14T22:13:20Z",
            "lastTimestamp": "2023-11-14T22:13:20Z",
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": "kubelet",
            "reportingInstance": "n1",
        }

    recorded(story)


def test_a_message_is_as_long_as_it_is():
    async def story(api, recorder):
        recorder.record(reference(POD), "Warning", "Unhealthy", "x" * 10_000)
        await asyncio.sleep(1)
        [event] = api.events.values()
        assert event["message"] == "x" * 10_000

    recorded(story)


def test_repeats_are_counted_up():
    async def story(api, recorder):
        for _ in range(3):
            recorder.record(reference(POD), "Warning", "BackOff", "again")
            await asyncio.sleep(10)
        [event] = api.events.values()
        assert (event["count"], event["lastTimestamp"]) == (3, "2023-11-14T22:13:40Z")

    recorded(story)


def test_an_event_that_expired_begins_anew():
    async def story(api, recorder):
        recorder.record(reference(POD), "Warning", "BackOff", "again")
        await asyncio.sleep(10)
        first = set(api.events)
        api.events.clear()
        recorder.record(reference(POD), "Warning", "BackOff", "again")
        await asyncio.sleep(10)
        assert len(api.events) == 1
        assert set(api.events) != first

    recorded(story)


def test_a_moment_that_others_have_had_loses_nothing_and_counts_nobody_else_s_event():
    """Where time is virtual many parts tell of one object in the same nanosecond."""

    async def story(api, recorder):
        api.failures = [already_exists("events", "", "web.1") for _ in range(5)]
        recorder.record(reference(POD), "Warning", "FailedAttachVolume", "no")
        await asyncio.sleep(1)
        [name] = api.events
        recorder.record(reference(POD), "Warning", "FailedAttachVolume", "no")
        await asyncio.sleep(1)
        assert {key: event["count"] for key, event in api.events.items()} == {name: 2}
        assert api.calls == 7

    recorded(story)


def test_a_short_outage_loses_nothing():
    async def story(api, recorder):
        api.failures = [ServiceUnavailable("down")] * 5
        recorder.record(reference(POD), "Normal", "A", "a")
        recorder.record(reference(POD), "Normal", "B", "b")
        await asyncio.sleep(60)
        assert [event["reason"] for event in api.events.values()] == ["A", "B"]

    recorded(story)


def test_an_endless_outage_gives_the_event_up():
    async def story(api, recorder):
        api.failures = [ServiceUnavailable("down")] * ATTEMPTS
        recorder.record(reference(POD), "Normal", "A", "a")
        recorder.record(reference(POD), "Normal", "B", "b")
        await asyncio.sleep(1000)
        assert [event["reason"] for event in api.events.values()] == ["B"]

    recorded(story)


def test_a_refused_event_is_not_tried_again():
    async def story(api, recorder):
        api.failures = [Forbidden("namespace is being terminated")]
        recorder.record(reference(POD), "Normal", "A", "a")
        await asyncio.sleep(100)
        assert api.calls == 1
        assert recorder.idle()

    recorded(story)


def test_whoever_has_yet_to_run_it_is_told_with_the_first_event():
    async def story(api, recorder):
        begun = []
        recorder.begin = lambda: begun.append(recorder.idle())
        assert not begun
        recorder.record(reference(POD), "Normal", "A", "a")
        recorder.record(reference(POD), "Normal", "B", "b")
        assert begun == [False]

    recorded(story)


def test_a_full_queue_drops_and_counts():
    async def story(api, recorder):
        for n in range(QUEUE_BOUND + 3):
            about = {**reference(POD), "name": f"pod{n}"}
            recorder.record(about, "Normal", "A", "a")
        assert recorder.dropped == 3
        await asyncio.sleep(1)
        assert len(api.events) == QUEUE_BOUND

    recorded(story)


def test_many_events_are_written_at_once_but_those_of_one_kind_in_order():
    async def story(api, recorder):
        together, most = 0, 0
        create = api.create

        async def slow(*given, **options):
            nonlocal together, most
            together += 1
            most = max(most, together)
            await asyncio.sleep(0.01)
            together -= 1
            return await create(*given, **options)

        api.create = slow
        for n in range(100):
            recorder.record({**reference(POD), "name": f"pod{n}"}, "Normal", "A", "a")
        for _ in range(3):
            recorder.record(reference(POD), "Normal", "Again", "and again")
        await asyncio.sleep(5)
        assert most == AT_ONCE
        assert len(api.events) == 101
        [again] = [one for one in api.events.values() if one["reason"] == "Again"]
        assert again["count"] == 3

    recorded(story)


def test_events_are_gathered_where_the_part_wants_that():
    async def story(api, recorder):
        recorder.gather_seconds = 0.05
        calls = []
        for reason in ("Pulled", "Created", "Started"):
            recorder.record(reference(POD), "Normal", reason, reason)
            await asyncio.sleep(0.01)
            calls.append(api.calls)
        assert calls == [0, 0, 0]
        assert not recorder.idle()
        await asyncio.sleep(0.05)
        assert [event["reason"] for event in api.events.values()] == [
            "Pulled",
            "Created",
            "Started",
        ]
        assert recorder.idle()

    recorded(story)


class BusyClock:
    """Every look at it finds the loop `lag` later: somebody else is using it."""

    def __init__(self, lag):
        self.lag, self.at = lag, 0.0

    def now(self):
        return 1_700_000_000.0 + self.at

    def monotonic(self):
        self.at += self.lag
        return self.at

    async def sleep(self, seconds):
        self.at += seconds
        await asyncio.sleep(0)


def written_after(seconds, lag, count):
    """How many of `count` events are written by then, each turn of the loop taking `lag`."""

    async def run():
        api = EventApi()
        clock = BusyClock(lag)
        recorder = EventRecorder(api, "kubelet", clock=clock)
        for number in range(count):
            about = {**reference(POD), "name": f"web-{number}"}
            recorder.record(about, "Normal", "Started", "it started")
        tasks = Tasks("test")
        tasks.start("events", recorder.run())
        while clock.monotonic() < seconds:
            await asyncio.sleep(0)
        written = len(api.events)
        await tasks.stop()
        return written

    return asyncio.run(run())


def test_events_wait_while_the_loop_is_busy_but_not_forever():
    assert written_after(3.0, lag=0.01, count=5) == 0
    assert written_after(8.0, lag=0.01, count=5) == 5
    assert written_after(0.02, lag=0.0001, count=5) == 5


def test_a_queue_that_fills_up_is_written_until_it_is_half_empty():
    assert 10 < written_after(3.0, lag=0.004, count=QUEUE_BOUND // 2 + 10) < 20

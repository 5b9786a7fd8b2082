import asyncio
import random

import pytest

from sampan.api.resources import CONFIG_MAPS, SECRETS
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes import tracked_objects
from sampan.kubelet.volumes.tracked_objects import (
    IDLE_SECONDS,
    READ_AGAIN_SECONDS,
    TrackedObjects,
)
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

WORD = ("ConfigMap", "words")


def make_pod(uid="u1", volume="words"):
    env = [{"secretRef": {"name": "keys"}}]
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": uid},
        "spec": {
            "volumes": [{"name": "v", "configMap": {"name": volume}}],
            "containers": [{"name": "c", "envFrom": env}],
        },
    }


def told(story):
    async def run():
        api = SmallApi(LoopClock())
        tracked = TrackedObjects(api, clock=LoopClock(), rng=random.Random(1))
        try:
            await story(tracked, api)
        finally:
            await tracked.stop()

    virtual_time.run(run())


async def make_words(api, text, **more):
    words = {"metadata": {"name": "words"}, "data": {"a": text}, **more}
    await api.create(CONFIG_MAPS, words, "shop")


def test_pods_share_one_watch_and_reading_costs_nothing():
    """[N15] no request for a sync of an unchanged pod"""

    async def story(tracked, api):
        await make_words(api, "x")
        found = await tracked.of(make_pod("u1"), lambda uid: None)
        assert found[WORD]["data"] == {"a": "x"}
        assert found["Secret", "keys"] is None
        for uid in ("u1", "u1", "u2"):
            await tracked.of(make_pod(uid), lambda uid: None)
        await asyncio.sleep(1)
        assert sorted(api.calls) == [
            "create configmaps", "list configmaps", "list secrets", "watch configmaps",
            "watch secrets",
        ]  # fmt: skip

    told(story)


def test_whoever_refers_to_an_object_hears_of_its_changes():
    """[N15] at once, and only then"""

    async def story(tracked, api):
        heard = []
        for uid in ("u1", "u2"):
            await tracked.of(make_pod(uid), heard.append)
        assert heard == []  # what was read first is no change
        await make_words(api, "x")
        await api.create(CONFIG_MAPS, {"metadata": {"name": "others"}}, "shop")
        await asyncio.sleep(0.01)
        assert heard == ["u1", "u2"]
        tracked.release("u1")
        await api.patch(CONFIG_MAPS, "shop", "words", {"data": {"a": "y"}})
        await asyncio.sleep(0.01)
        assert heard == ["u1", "u2", "u2"]
        found = await tracked.of(make_pod("u2"), heard.append)
        assert found[WORD]["data"] == {"a": "y"}
        await api.delete(CONFIG_MAPS, "shop", "words")
        await asyncio.sleep(0.01)
        assert (await tracked.of(make_pod("u2"), heard.append))[WORD] is None

    told(story)


def test_what_nobody_refers_to_is_no_longer_watched():
    async def story(tracked, api):
        await tracked.of(make_pod("u1"), lambda uid: None)
        assert len(tracked) == 2
        tracked.release("u1")
        await asyncio.sleep(IDLE_SECONDS - 1)
        await tracked.of(make_pod("u2"), lambda uid: None)  # in time: nothing is asked for again
        assert api.calls.count("list secrets") == 1
        await asyncio.sleep(IDLE_SECONDS * 2)
        assert len(tracked) == 2
        await tracked.of(make_pod("u2", volume="others"), lambda uid: None)
        await asyncio.sleep(IDLE_SECONDS + 1)
        assert len(tracked) == 2
        tracked.release("u2")
        tracked.release("u2")
        await asyncio.sleep(IDLE_SECONDS + 1)
        assert len(tracked) == 0

    told(story)


def test_an_immutable_object_is_read_and_not_watched():
    """[N15]"""

    async def story(tracked, api):
        heard = []
        await make_words(api, "x", immutable=True)
        await api.create(SECRETS, {"metadata": {"name": "keys"}, "immutable": True}, "shop")
        await tracked.of(make_pod("u1"), heard.append)
        await asyncio.sleep(0.01)
        await api.delete(CONFIG_MAPS, "shop", "words")
        await make_words(api, "new")
        await asyncio.sleep(1)
        assert heard == []
        assert (await tracked.of(make_pod("u1"), heard.append))[WORD]["data"] == {"a": "x"}
        assert (await tracked.of(make_pod("u2"), heard.append))[WORD]["data"] == {"a": "new"}

    told(story)


def test_a_silent_api_is_not_waited_for_forever():
    async def story(tracked, api):
        api.go_down()
        with pytest.raises(VolumeFailure, match="cache: timed out waiting for the condition"):
            await tracked.of(make_pod(), lambda uid: None)
        api.come_back()
        await asyncio.sleep(5)
        assert (await tracked.of(make_pod(), lambda uid: None))[WORD] is None

    told(story)


def make_large_pod(count, uid="u1"):
    volumes = [{"name": f"v{n}", "secret": {"secretName": f"s{n}"}} for n in range(count)]
    meta = {"name": "web", "namespace": "shop", "uid": uid}
    return {"metadata": meta, "spec": {"volumes": volumes, "containers": []}}


def test_a_pod_that_refers_to_thousands_has_them_read_and_not_watched():
    async def story(tracked, api):
        heard = []
        pod = make_large_pod(500)
        await api.create(SECRETS, {"metadata": {"name": "s7"}}, "shop")
        found = await tracked.of(pod, heard.append)
        assert len(found) == 500
        assert found["Secret", "s7"] is not None
        assert found["Secret", "s8"] is None
        assert len(tracked) == 0
        await api.create(SECRETS, {"metadata": {"name": "s8"}}, "shop")
        assert (await tracked.of(pod, heard.append))["Secret", "s8"] is None
        await asyncio.sleep(READ_AGAIN_SECONDS + 1)
        assert heard == ["u1"]
        assert (await tracked.of(pod, heard.append))["Secret", "s8"] is not None
        tracked.release("u1")
        await asyncio.sleep(READ_AGAIN_SECONDS * 2)
        assert heard == ["u1"]

    told(story)


def test_watches_are_bounded_in_all(monkeypatch):
    monkeypatch.setattr(tracked_objects, "MOST_WATCHED", 100)

    async def story(tracked, api):
        for number in range(10):
            pod = make_large_pod(20 * number + 20, f"u{number}")
            del pod["spec"]["volumes"][: 20 * number]
            await tracked.of(pod, lambda uid: None)
        assert len(tracked) == 100
        for number in range(10):
            tracked.release(f"u{number}")
        await asyncio.sleep(IDLE_SECONDS + 1)
        assert len(tracked) == 0

    told(story)

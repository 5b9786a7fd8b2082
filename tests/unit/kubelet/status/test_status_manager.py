"""[N14] the one writer of statuses."""

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.resources import PODS
from sampan.core.tasks import Tasks
from sampan.kubelet.status.status_manager import (
    PASSING_SECONDS,
    SOON_SECONDS,
    StatusManager,
    status_patch,
)
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.simulated_node import pod_named
from tests.support.worlds.small_api import SmallApi


def condition(kind, status, **more):
    return {"type": kind, "status": status, **more}


def test_a_patch_holds_only_what_changed():
    known = {
        "phase": "Pending",
        "startTime": "t",
        "conditions": [condition("Ready", "False", reason="x"), condition("Initialized", "True")],
    }
    wanted = {
        "phase": "Running",
        "startTime": "t",
        "conditions": [condition("Ready", "True"), condition("Initialized", "True")],
    }
    assert status_patch(known, wanted) == {
        "phase": "Running",
        "conditions": [{"reason": None, "type": "Ready", "status": "True"}],
    }


def test_an_equal_status_needs_no_patch_whatever_empty_fields_say():
    known = {"phase": "Running", "containerStatuses": [{"name": "a", "lastState": {}}]}
    assert status_patch(known, {"phase": "Running", "containerStatuses": [{"name": "a"}]}) is None


def test_conditions_of_others_are_never_written():
    wanted = {"conditions": [condition("example.com/theirs", "True")]}
    assert status_patch({}, wanted) is None


def test_conditions_of_others_come_before_ours():
    theirs, known = condition("DisruptionTarget", "True"), condition("Ready", "True")
    wanted = {"conditions": [theirs, condition("Ready", "False")]}
    assert status_patch({"conditions": [known, theirs]}, wanted) == {
        "conditions": [condition("Ready", "False")],
        "$setElementOrder/conditions": [{"type": "DisruptionTarget"}, {"type": "Ready"}],
    }


def test_who_is_rejected_is_no_longer_said_to_be_scheduled():
    known = {"conditions": [condition("PodScheduled", "True"), condition("Theirs", "True")]}
    patch = status_patch(known, {"conditions": [condition("Theirs", "True")]})
    assert patch["conditions"] == [{"$patch": "delete", "type": "PodScheduled"}]


def test_changed_addresses_replace_the_old_ones():
    patch = status_patch({"podIPs": [{"ip": "1"}]}, {"podIPs": [{"ip": "2"}]})
    assert patch == {"podIPs": [{"$patch": "replace"}, {"ip": "2"}]}


def test_a_reason_that_went_is_taken_away():
    assert status_patch({"reason": "Evicted"}, {"phase": "Running"}) == {
        "phase": "Running",
        "reason": None,
    }


def told(story):
    """Run a story about a status_manager, an API and a pod in it."""

    async def run():
        clock = LoopClock()
        api, tasks = SmallApi(clock), Tasks("test")
        pod = await api.create(PODS, pod_named("web", node_name="n"), "default")
        status_manager = StatusManager(api, tasks=tasks, clock=clock, rng=random.Random(1))
        await story(status_manager, api, pod)
        await tasks.stop()

    virtual_time.run(run())


def test_only_the_newest_of_several_statuses_is_written():
    async def story(status_manager, api, pod):
        for phase in ("Pending", "Running", "Succeeded"):
            status_manager.set(pod, {"phase": phase})
        await asyncio.sleep(1)
        assert api.find(PODS, "default", "web")["status"]["phase"] == "Succeeded"
        assert api.calls.count("patch status pods") == 1

    told(story)


def test_a_terminal_phase_does_not_revert():
    async def story(status_manager, api, pod):
        status_manager.set(pod, {"phase": "Failed"})
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(1)
        status_manager.set(pod, {"phase": "Succeeded"})
        await asyncio.sleep(1)
        assert api.find(PODS, "default", "web")["status"]["phase"] == "Failed"

    told(story)


def test_the_pod_is_deleted_after_its_last_status_and_only_under_its_uid():
    async def story(status_manager, api, pod):
        status_manager.set(pod, {"phase": "Failed"})
        status_manager.delete(pod)
        await asyncio.sleep(1)
        assert api.find(PODS, "default", "web") is None
        assert api.calls[-2:] == ["patch status pods", "delete pods"]
        await api.create(PODS, pod_named("web", node_name="n"), "default")
        status_manager.set(pod, {"phase": "Running"})
        status_manager.delete(pod)
        await asyncio.sleep(1)
        assert api.find(PODS, "default", "web")["status"]["phase"] == "Pending"

    told(story)


def test_an_outage_only_delays():
    async def story(status_manager, api, pod):
        api.go_down()
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(100)
        status_manager.set(pod, {"phase": "Failed"})
        status_manager.delete(pod)
        assert not status_manager.is_idle()
        api.come_back()
        await asyncio.sleep(20)
        assert api.find(PODS, "default", "web") is None
        assert status_manager.is_idle()

    told(story)


def test_the_api_is_not_asked_again_for_what_it_has():
    async def story(status_manager, api, pod):
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(1)
        written = api.find(PODS, "default", "web")
        status_manager.seen(written)
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(1)
        assert api.calls.count("patch status pods") == 1

    told(story)


def test_a_passing_status_is_written_only_when_nothing_newer_comes():
    """[R3] a simulated pod that starts at once costs one write."""

    async def story(status_manager, api, pod):
        status_manager.set_passing(pod, {"phase": "Pending", "startTime": "t"})
        assert not status_manager.is_idle()
        await asyncio.sleep(PASSING_SECONDS / 2)
        status_manager.set(pod, {"phase": "Running", "startTime": "t"})
        await asyncio.sleep(1)
        assert api.calls.count("patch status pods") == 1
        status_manager.set_passing(pod, {"phase": "Running", "startTime": "later"})
        await asyncio.sleep(1)
        assert api.find(PODS, "default", "web")["status"]["startTime"] == "later"
        assert status_manager.is_idle()

    told(story)


BEGINS = {"phase": "Pending", "startTime": "t"}


def written_to(api):
    """What is, in order."""
    patch, written = api.patch, []

    async def noted(resource, namespace, name, body, **options):
        written.append(body["status"])
        return await patch(resource, namespace, name, body, **options)

    api.patch = noted
    return written


def test_what_has_time_is_written_a_moment_later():
    async def story(status_manager, api, pod):
        written = written_to(api)
        status_manager.set_soon(pod, BEGINS)
        assert not status_manager.is_idle()
        await asyncio.sleep(SOON_SECONDS / 2)
        assert written == []
        await asyncio.sleep(SOON_SECONDS)
        assert written == [{"startTime": "t"}]
        assert status_manager.is_idle()

    told(story)


def test_what_has_time_is_written_before_anything_newer():
    async def story(status_manager, api, pod):
        written = written_to(api)
        status_manager.set_soon(pod, BEGINS)
        status_manager.set(pod, {**BEGINS, "phase": "Running"})
        assert status_manager.status_of(pod["metadata"]["uid"])["phase"] == "Running"
        status_manager.set(pod, {**BEGINS, "phase": "Succeeded"})
        status_manager.delete(pod)
        await asyncio.sleep(SOON_SECONDS / 2)
        assert written == [{"startTime": "t"}, {"phase": "Succeeded"}]
        assert api.find(PODS, "default", "web") is None

    told(story)


def test_what_the_api_says_already_is_not_waited_for():
    async def story(status_manager, api, pod):
        status_manager.set(pod, BEGINS)
        await asyncio.sleep(1)
        written = written_to(api)
        status_manager.set_soon(pod, {**BEGINS})
        status_manager.set(pod, {**BEGINS, "phase": "Running"})
        await asyncio.sleep(SOON_SECONDS / 2)
        assert written == [{"phase": "Running"}]

    told(story)


def test_a_closed_reporter_begins_nothing():
    async def story(status_manager, api, pod):
        status_manager.set_passing(pod, {"phase": "Running"})
        status_manager.close()
        await asyncio.sleep(1)
        status_manager.set(pod, {"phase": "Failed"})
        await asyncio.sleep(1)
        assert "patch status pods" not in api.calls

    told(story)


def test_a_conflict_over_the_same_pod_is_tried_again():
    """[N14] another writer was faster; only another uid means that the pod is gone."""

    async def story(status_manager, api, pod):
        api.conflicts = 2
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(5)
        assert api.find(PODS, "default", "web")["status"]["phase"] == "Running"

    told(story)


def changing_back(api):
    """A webhook that alters every status that is written."""
    asked, patch = [], api.patch

    async def altered(resource, namespace, name, body, **options):
        asked.append(body["status"])
        told = {**body["status"], "phase": "Unknown"}
        return await patch(resource, namespace, name, {**body, "status": told}, **options)

    api.patch = altered
    return asked


def test_who_changes_back_what_was_written_is_answered_ever_more_seldom():
    async def story(status_manager, api, pod):
        asked = changing_back(api)
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(100)
        assert 10 < len(asked) < 30
        status_manager.set(pod, {"phase": "Running", "message": "new"})
        await asyncio.sleep(0.05)  # what is new does not wait
        assert any(status.get("message") == "new" for status in asked)
        status_manager.set_passing(pod, {"phase": "Running", "message": "newer"})
        await asyncio.sleep(PASSING_SECONDS * 1.5)
        assert any(status.get("message") == "newer" for status in asked)

    told(story)


def test_who_changes_back_what_was_written_does_not_keep_a_pod_from_being_deleted():
    async def story(status_manager, api, pod):
        asked = changing_back(api)
        status_manager.set(pod, {"phase": "Succeeded"})
        await asyncio.sleep(30)
        status_manager.delete(pod)
        await asyncio.sleep(1)
        assert api.find(PODS, "default", "web") is None
        assert {status["phase"] for status in asked} == {"Succeeded"}

    told(story)


def test_of_a_pod_only_its_newest_version_is_kept():
    """Fifty thousand pods are fifty thousand objects, not twice as many."""

    async def story(status_manager, api, pod):
        status_manager.set(pod, {"phase": "Running"})
        await asyncio.sleep(1)
        newest = api.find(PODS, "default", "web")
        status_manager.seen(newest)
        (entry,) = status_manager._entries.values()
        assert entry.pod is newest
        assert entry.target is newest
        assert entry.wanted is entry.known, "and of its status one copy"

    told(story)


JSON = st.recursive(
    st.sampled_from([None, "", "a", 0, 1, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)


def plain(value: object) -> object:
    if isinstance(value, dict):
        kept = {key: plain(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, "")}
    return [plain(item) for item in value] if isinstance(value, list) else value


@given(JSON, JSON)
def test_what_differs_only_in_empty_fields_is_the_same(known, wanted):
    patch = status_patch({"phase": known}, {"phase": wanted})
    assert (patch is None) == (plain(known) == plain(wanted))


def test_a_field_of_a_condition_that_went_is_named_and_one_that_never_was_is_not():
    known = {"conditions": [condition("Ready", "False", reason="x", message="m")]}
    wanted = {"conditions": [condition("Ready", "False", reason=None, lastProbeTime=None)]}
    told = condition("Ready", "False", reason=None, message=None)
    assert status_patch(known, wanted) == {"conditions": [told]}

from sampan.api.resources import PODS
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.preemption.evict import disruption, evict
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

VICTIM = AssignedPod(Usage((), 0, 0), namespace="default", name="v", uid="u")


def test_the_victim_is_told_who_removes_it_and_only_it():
    patch = disruption(VICTIM, "mine", 0.0)
    assert patch["metadata"] == {"uid": "u"}
    [condition] = patch["status"]["conditions"]
    assert condition["reason"] == "PreemptionByScheduler"
    assert condition["message"] == "mine: preempting to accommodate a higher priority pod"


def test_a_victim_that_is_gone_already_is_no_failure():
    async def story():
        api = SmallApi(LoopClock())
        assert await evict(api, VICTIM, "mine", 0.0) is False
        pod = {"kind": "Pod", "metadata": {"name": "v"}, "spec": {}}
        made = await api.create(PODS, pod, "default")
        there = AssignedPod(
            Usage((), 0, 0), namespace="default", name="v", uid=made["metadata"]["uid"]
        )
        assert await evict(api, there, "mine", 0.0) is True

    virtual_time.run(story())

"""[N2] [N3] [N5] where wishes meet the workers."""

import pytest

from sampan.kubelet.pods.allocation import Allocations
from sampan.kubelet.pods.fit import NodeRoom
from sampan.kubelet.pods.parts import PodState
from sampan.kubelet.pods.pod_config import PodConfig
from sampan.kubelet.pods.pod_state import Cause, Phase
from sampan.kubelet.pods.sync_loop import NodeView, SyncLoop
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.observed_pods import UID, container, observed_pod
from tests.support.worlds.simulated_node import pod_named

ROOM = NodeRoom("n", {}, frozenset(), {"cpu": "1", "pods": "110"})


class Recording:
    """Stands for workers, status_manager and events, and writes down what it is told."""

    def __init__(self):
        self.log = []
        self.known = {}

    def want(self, pod, first_seen, end=None, after=frozenset()):
        name = pod["metadata"]["name"]
        self.known[pod["metadata"]["uid"]] = Phase.SYNCING
        self.log.append(
            f"want {name}" + (f" ending: {end.cause} {end.grace_seconds:g}" if end else "")
        )

    def update(self, pod):
        self.log.append(f"update {pod['metadata']['name']}")

    def remove(self, uid, grace_seconds):
        self.known.pop(uid, None)
        self.log.append(f"remove {uid} {grace_seconds:g}")

    def wake(self, uid):
        self.log.append(f"wake {uid}")

    def adopt_orphan(self, pod, grace_seconds):
        names = [one["name"] for one in pod["spec"]["containers"]]
        self.log.append(f"orphan {pod['metadata']['name']} {names} {grace_seconds:g}")

    def end_again(self, uid):
        self.log.append(f"end again {uid}")

    def active_pods(self):
        return []

    def __contains__(self, uid):
        return uid in self.known

    def seen(self, pod):
        self.log.append(f"seen {pod['metadata']['name']}")

    def forget(self, uid):
        self.log.append(f"forget {uid}")

    def delete(self, pod):
        self.log.append(f"delete {pod['metadata']['name']}")

    def warning(self, pod, reason, message, *, container=""):
        self.log.append(f"{reason}: {message}")


class Mirrored:
    """Stands for the mirrors."""

    def __init__(self, recording):
        self._log = recording.log

    def sweep(self):
        """Asked when every source has spoken."""

    def seen(self, mirror):
        self._log.append(f"mirror seen {mirror['metadata']['name']}")

    def gone(self, mirror):
        self._log.append(f"mirror gone {mirror['metadata']['name']}")


def pod(name="web", uid="1", **words):
    made = pod_named(name, **words)
    made["metadata"] |= {"uid": uid, "namespace": "default"}
    return made


def told(*sets, found=None):
    """What the others hear when the source sends these sets, and the runtime shows `found`."""

    async def story():
        recording = Recording()
        loop = SyncLoop(
            sources=PodConfig(["api"]),
            workers=recording,
            records=PodState(None, recording, Mirrored(recording), Allocations()),
            events=recording,
            node=NodeView(lambda: ROOM),
            clock=LoopClock(),
        )
        for pods in sets:
            recording.log.clear()
            loop.deliver("api", pods)
        if found is not None:
            loop.look_for_orphans(found)
        return recording.log

    return virtual_time.run(story())


def test_a_new_pod_is_wanted():
    assert told([pod()]) == ["want web"]


def test_a_pod_that_is_being_deleted_when_it_is_first_seen_gets_what_is_left_of_its_grace():
    """[N21]"""
    ending = pod()
    ending["metadata"] |= {
        "deletionGracePeriodSeconds": 30,
        "deletionTimestamp": "2023-11-14T22:13:30Z",  # ten seconds after the beginning of time here
    }
    assert told([ending]) == [f"want web ending: {Cause.DELETED} 10"]


def test_a_pod_that_is_over_when_it_is_first_seen_is_only_ended():
    over = pod()
    over["status"] = {"phase": "Succeeded"}
    assert told([over]) == [f"want web ending: {Cause.COMPLETED} 30"]


def test_a_pod_that_does_not_fit_is_refused_with_an_event():
    """[N5]"""
    greedy = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "2"}}}
    assert told([pod(containers=[greedy])]) == [
        "OutOfcpu: Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000",
        f"want web ending: {Cause.REJECTED} 30",
    ]


def test_updates_deletions_and_removals_reach_worker_and_reporter():
    changed = pod(labels_changed=True)
    assert told([pod()], [changed]) == ["seen web", "want web"]
    ending = pod()
    ending["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    assert told([pod()], [ending]) == ["seen web", f"want web ending: {Cause.DELETED} 30"]
    assert told([pod()], []) == ["forget 1", "update web", "remove 1 30"]


@pytest.mark.parametrize(("gates", "woken"), [([], []), ([{"conditionType": "x"}], ["wake 1"])])
def test_a_changed_status_wakes_only_pods_whose_readiness_others_decide(gates, woken):
    before, after = pod(readinessGates=gates), pod(readinessGates=gates)
    after["status"] = {"phase": "Running"}
    assert told([before], [after]) == ["seen web", "update web", *woken]


def test_what_nobody_wants_is_ended_only_after_the_source_has_spoken():
    """[N3]"""
    running = observed_pod(container())
    assert told(found=[running]) == []
    assert told([], found=[running]) == ["orphan web ['main'] 1"]
    assert told([pod(uid=UID)], found=[running]) == ["want web", f"end again {UID}"]


def test_a_mirror_pod_is_not_run_but_told_to_whom_it_concerns():
    """[N5]"""
    mirror = pod(annotations={"kubernetes.io/config.mirror": "x"})
    assert told([mirror]) == ["mirror seen web"]
    assert told([mirror], []) == ["mirror gone web"]


def test_a_pod_without_a_name_is_refused_with_an_event():
    """[N2]"""
    assert told([{"metadata": {"uid": "1"}}]) == [
        "FailedValidation: Error validating pod: pod has no name or no uid"
    ]

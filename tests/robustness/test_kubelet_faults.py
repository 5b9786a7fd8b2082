"""Seeded weather over one node: all that can go wrong, in any order, then calm. Virtual time.

Checked all the time: never two pods of one name at once, grace never grows.
Checked at every start: the pod has a worker, and that may start containers.
Checked in the end: every deleted pod is gone, nothing is left, every status is true. [N7] [N21]
"""

import asyncio
import random

import orjson
import pytest

from sampan.api.objects import copy_of, is_deleted, uid_of
from sampan.api.resources import PODS
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.kubelet.contracts.verdict import Verdict
from sampan.kubelet.pods.pod_state import Phase
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode, pod_named

pytestmark = pytest.mark.slow

STATIC = ["first", "second"]
NAMES = [f"pod-{number}" for number in range(8)]
SCRIPTS = [
    {},
    {"exit-after-seconds": "3", "exit-code": "1"},
    {"exit-after-seconds": "8", "exit-code": "0"},
    {"start-seconds": "2", "stop-seconds": "1"},
    {"stop-seconds": "never"},
    {"stop-seconds": "20"},
    {"fail": "run_sandbox:1:no network;create_container:2:no disk"},
    {"fail": "start_container:1:no;stop_container:2:stuck"},
    {"sandbox-seconds": "3"},
]


def static_uid(pod):
    """Of the static pod that it mirrors."""
    return pod["metadata"].get("annotations", {}).get("kubernetes.io/config.mirror")


class Weather:
    def __init__(self, node, seed, manifests):
        self.node, self.rng, self.manifests = node, random.Random(seed), manifests
        self.ended: set[str] = set()
        self.grace: dict[str, float] = {}  # of every pod that is being ended by this agent
        self.wrong: list[object] = []  # starts in pods that may not start anything
        self.watch_starts()

    def watch_starts(self):
        """No container of a pod that ends is ever started: asked at every start itself."""
        runtime = self.node.runtime
        start = runtime.start_container

        async def watched(container_id):
            sandbox, container = runtime.table.containers[container_id]
            uid, workers = sandbox.status.uid, self.node.kubelet._workers
            if workers.phase(uid) is not Phase.SYNCING:
                self.wrong.append((sandbox.status.name, container.status.name, workers.phase(uid)))
            await start(container_id)

        runtime.start_container = watched

    async def blow(self, minutes):
        end = self.node.clock.monotonic() + 60 * minutes
        deeds = [
            (self.make, 6), (self.delete, 4), (self.force, 1), (self.crash, 2),
            (self.kill_sandbox, 1), (self.restart, 1), (self.api_outage, 1),
            (self.runtime_outage, 1), (self.break_watch, 1), (self.lie, 1),
            (self.resize, 2), (self.manifest, 1), (self.delete_mirror, 1),
            (self.set_clock, 1), (self.conflict, 3), (self.shorten, 2),
            (self.evict, 2),
        ]  # fmt: skip
        while self.node.clock.monotonic() < end:
            deed = self.rng.choices([deed for deed, _ in deeds], [often for _, often in deeds])[0]
            await deed()
            await asyncio.sleep(self.rng.choice([0, 0.01, 0.5, 3, 20]))
            await self.check()

    async def make(self):
        name = self.rng.choice(NAMES)
        if self.node.has(name) or self.node.api.down:
            return
        words = {"restartPolicy": self.rng.choice(["Always", "OnFailure", "Never"])}
        if self.rng.random() < 0.5:
            policy = self.rng.choice(["NotRequired", "RestartContainer"])
            words["containers"] = [{
                "name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}},
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": policy}],
            }]  # fmt: skip
        if self.rng.random() < 0.3:
            words["initContainers"] = [{"name": "setup", "image": "i:1"}]
            script = {"exit-after-seconds.setup": "1", "exit-code.setup": "1,0"}
        else:
            script = self.rng.choice(SCRIPTS)
        await self.node.make(
            name, script=script, terminationGracePeriodSeconds=self.rng.choice([0, 2, 30]), **words
        )

    async def delete(self, grace=None):
        name = self.rng.choice(NAMES)
        if self.node.has(name) and not self.node.api.down:
            await self.node.delete(name, grace_seconds=grace)

    async def shorten(self):
        """Ask again for the end of a pod that is ending, with less time, or with more."""
        ending = [pod for pod in self.node.api.objects(PODS) if is_deleted(pod)]
        if ending and not self.node.api.down:
            name = self.rng.choice(ending)["metadata"]["name"]
            await self.node.delete(name, grace_seconds=self.rng.choice([1, 5, 60]))

    async def evict(self):
        """The node needs the room of some pod, whatever that is doing."""
        uids = list(self.node.kubelet._workers._slots)
        if not uids:
            return
        uid = self.rng.choice(uids)
        for grace in self.rng.sample([2.0, 20.0, 60.0], 2):
            self.node.kubelet._evict(uid, grace, Verdict("Evicted", "no room"))
            await self.check()
            await asyncio.sleep(self.rng.choice([0, 0.5]))

    async def set_clock(self):
        """Somebody sets the clock, or the machine slept."""
        self.node.clock.jump(self.rng.choice([-7200, -60, -1, 1, 60, 7200]))

    async def conflict(self):
        """Another writer is faster, several times."""
        self.node.api.conflicts = self.rng.choice([1, 3])

    async def force(self):
        await self.delete(grace=0)

    async def crash(self):
        running = [
            one
            for pod in await self.pods()
            for one in pod.containers
            if one.state is ContainerState.RUNNING
        ]
        if running:
            self.node.runtime.crash(self.rng.choice(running).id, self.rng.choice([0, 1, 137]))

    async def kill_sandbox(self):
        ready = [one for pod in await self.pods() for one in pod.sandboxes if one.ready]
        if ready:
            self.node.runtime.kill_sandbox(self.rng.choice(ready).id)

    async def restart(self):
        await self.node.stop()
        self.grace.clear()  # a new agent counts what is left, to the second
        await asyncio.sleep(self.rng.choice([0, 1, 30]))
        await self.node.start(wait=False)

    async def api_outage(self):
        self.node.api.go_down()
        await asyncio.sleep(self.rng.choice([0.1, 5, 60]))
        self.node.api.come_back()

    async def runtime_outage(self):
        self.node.runtime.go_down()
        await asyncio.sleep(self.rng.choice([0.1, 5, 60]))
        self.node.runtime.come_back()

    async def break_watch(self):
        if self.rng.random() < 0.5:
            self.node.api.compact()
        self.node.api.break_watches()

    async def lie(self):
        name = self.rng.choice(NAMES)
        if self.node.has(name) and not self.node.api.down:
            if self.node.status(name).get("phase") in ("Succeeded", "Failed"):
                return
            self.node.api.conflicts = 0
            lie = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
            await self.node.api.patch(PODS, "default", name, lie, subresource="status")

    async def resize(self):
        """To something that fits, that fits if others go, or that never fits."""
        name = self.rng.choice(NAMES)
        if self.node.api.down or not self.node.has(name) or is_deleted(self.node.pod(name)):
            return
        pod = copy_of(self.node.pod(name))
        resources = pod["spec"]["containers"][0].get("resources")
        if resources:
            resources["requests"]["cpu"] = self.rng.choice(["50m", "1", "2500m", "9"])
            await self.node.api.update(PODS, pod)

    async def manifest(self):
        """Written, changed or removed."""
        name = self.rng.choice(STATIC)
        path = self.manifests / f"{name}.json"
        if path.exists() and self.rng.random() < 0.3:
            path.unlink()
            return
        image = self.rng.choice(["app:1", "app:2"])
        made = pod_named(name, containers=[{"name": "main", "image": image}])
        hidden = self.manifests / f".{name}"
        hidden.write_bytes(orjson.dumps(made))
        hidden.rename(path)

    async def delete_mirror(self):
        name = f"{self.rng.choice(STATIC)}-node-1"
        if self.node.has(name) and not self.node.api.down:
            await self.node.delete(name, grace_seconds=self.rng.choice([None, 0]))

    async def pods(self):
        table = self.node.runtime.table
        return [table.observed(uid) for uid in table.uids()]

    async def check(self):
        """At every moment."""
        alive = [
            pod
            for pod in await self.pods()
            if any(one.state is ContainerState.RUNNING for one in pod.containers)
        ]
        assert not self.wrong, f"started although the pod ends: {self.wrong}"
        names = [pod.name for pod in alive]
        assert len(names) == len(set(names)), f"two pods of one name: {names}"
        workers = self.node.kubelet._workers
        for uid, slot in workers._slots.items():
            if slot.worker.phase is Phase.TERMINATING:
                left = slot.worker.grace_seconds
                assert left <= self.grace.get(uid, left), f"grace of {uid} grew to {left}"
                self.grace[uid] = left
            else:
                self.grace.pop(uid, None)
        for uid in list(self.ended):
            if uid in workers and workers.phase(uid) < Phase.TERMINATED:
                self.ended.discard(uid)  # a new agent has to find out for itself
        for pod in alive:
            assert pod.uid not in self.ended, f"{pod.name} runs although it has ended"
        for pod in self.node.api.objects(PODS):
            if workers.phase(uid_of(pod)) in (Phase.TERMINATED, Phase.FINISHED):
                self.ended.add(uid_of(pod))

    async def calm(self):
        self.node.clock.jump(-3600)  # what ended just now ends in an hour
        await asyncio.sleep(700)
        await self.node.settle()
        shown = {static_uid(pod) or uid_of(pod): pod for pod in self.node.api.objects(PODS)}
        mirrors = {pod["metadata"]["name"] for pod in shown.values() if static_uid(pod)}
        assert mirrors == {f"{path.stem}-node-1" for path in self.manifests.glob("*.json")}
        seen = {pod.uid: pod for pod in await self.pods()}
        assert seen.keys() <= shown.keys(), "something is left over"
        for uid, pod in shown.items():
            assert not is_deleted(pod), f"{pod['metadata']['name']} is still being deleted"
            self.check_status(pod, seen.get(uid))
        await self.check_backoff()

    async def check_backoff(self):
        """Nothing that ended waits longer than five minutes for its next start."""
        newest = {
            pod.uid: next((one for one in pod.containers if one.name == "main"), None)
            for pod in await self.pods()
        }
        ended = {uid: one for uid, one in newest.items() if one and one.state == "exited"}
        await asyncio.sleep(310)
        await self.node.settle()
        for pod in self.node.api.objects(PODS):
            before = ended.get(static_uid(pod) or uid_of(pod))
            if before is not None and pod["status"]["phase"] == "Running":
                now = pod["status"]["containerStatuses"][0]["restartCount"]
                assert now > before.attempt, f"{pod['metadata']['name']} does not come back"

    def check_status(self, pod, seen):
        status = pod["status"]
        ready = next(one for one in status["conditions"] if one["type"] == "Ready")["status"]
        running = seen is not None and [
            one.id for one in seen.containers if one.state is ContainerState.RUNNING
        ]
        if status["phase"] in ("Succeeded", "Failed"):
            assert not running
            assert ready == "False"
            return
        assert status["phase"] == "Running", pod
        shown = status["containerStatuses"][0]
        pending = [one for one in status["conditions"] if one["type"] == "PodResizePending"]
        asked = (pod["spec"]["containers"][0].get("resources") or {}).get("requests")
        if "running" in shown["state"]:
            assert (shown.get("allocatedResources") == asked) == (not pending), status
        assert not [one for one in status["conditions"] if one["type"] == "PodResizeInProgress"]
        assert (ready == "True") == bool(running), (status, seen)
        if running:
            assert shown["containerID"] == f"simulated://{running[0]}"
        newest = max(one.attempt for one in seen.containers if one.name == "main")
        assert shown["restartCount"] == newest


@pytest.mark.parametrize("seed", range(6))
def test_after_the_storm_everything_is_as_it_should_be(seed, tmp_path):
    """[N6] [N7] [N8] [N14] [N21]"""

    async def story():
        manifests = tmp_path / "manifests"
        manifests.mkdir()
        words = {"manifests": str(manifests), "checkpoint": str(tmp_path / "state")}
        async with SimulatedNode(**words) as node:
            weather = Weather(node, seed, manifests)
            await weather.blow(minutes=30)
            await weather.calm()

    virtual_time.run(story())

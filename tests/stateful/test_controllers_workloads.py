"""Workloads reach their fixed point from wherever arbitrary changes, faults and restarts left them.

[M] Each controller of pods, alone with the garbage collector, on the real API: conflicts, lost
answers, caches that lag behind each other, broken watches and restarts in any order.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sampan.api.errors import NotFound
from sampan.api.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from tests.support.worlds.controller_worlds import absent, play, steps
from tests.support.worlds.faulty_client import Fate

EXAMPLES = settings(max_examples=25, deadline=None)
COUNT = st.integers(0, 3)
POD_STEPS = [
    st.tuples(st.just("ready"), COUNT),
    st.tuples(st.just("fail"), COUNT),
    st.tuples(st.just("delete"), COUNT),
]
STEPS = steps(
    st.tuples(st.just("scale"), st.integers(0, 5)),
    st.tuples(st.just("image"), st.sampled_from(["v1", "v2", "v3"])),
    *POD_STEPS,
)


class Workload:
    """One object named web, whose pods others start, fail and delete."""

    def __init__(self, plane, resource, **spec):
        self.plane, self.client, self.resource = plane, plane.client, resource
        self.replicas, self.image = 2, "v1"
        self.spec = {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]},
            },
            **spec,
        }

    async def begin(self):
        obj = {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {name: value for name, value in self.spec.items() if value is not None},
        }
        await self.client.create(self.resource, obj)

    async def do(self, verb, value):
        match verb:
            case "scale":
                self.replicas = value
                await self.change({"replicas": value})
            case "image":
                self.image = value
                containers = [{"name": "c", "image": value}]
                await self.change({"template": {"spec": {"containers": containers}}})
            case "ready":
                await self.set_phase("Running", value)
            case "fail":
                await self.set_phase("Failed", value)
            case "delete":
                for pod in (await self.pods())[:value]:
                    name = pod["metadata"]["name"]
                    await absent(self.client.delete(PODS, "default", name), NotFound)

    async def change(self, spec):
        await self.client.patch(self.resource, "default", "web", {"spec": spec}, patch_type="merge")

    async def pods(self):
        listed = (await self.client.list(PODS, "default")).items
        return [one for one in listed if "deletionTimestamp" not in one["metadata"]]

    async def set_phase(self, phase, most):
        status = "True" if phase == "Running" else "False"
        stamp = self.plane.time_text()
        ready = {"type": "Ready", "status": status, "lastTransitionTime": stamp}
        patch = {"status": {"phase": phase, "conditions": [ready]}}
        waiting = [pod for pod in await self.pods() if pod["status"].get("phase") == "Pending"]
        for pod in waiting[:most]:
            name = pod["metadata"]["name"]
            written = self.client.patch(PODS, "default", name, patch, subresource="status")
            await absent(written, NotFound)
        return len(waiting)

    async def tend(self):
        """Pods become ready until nothing happens any more."""
        return bool(await self.set_phase("Running", 100))

    async def living(self):
        return [one for one in await self.pods() if one["status"]["phase"] != "Failed"]

    async def status(self):
        return (await self.client.get(self.resource, "default", "web"))["status"]

    async def check_counts(self, *fields):
        found = await self.status()
        for field in fields:
            assert found.get(field, 0) == self.replicas, field

    async def check(self):
        living = await self.living()
        assert len(living) == self.replicas
        await self.check_counts("replicas", "readyReplicas", "availableReplicas")


class Updated(Workload):
    async def check(self):
        living = await self.living()
        assert len(living) == self.replicas
        assert {one["spec"]["containers"][0]["image"] for one in living} <= {self.image}
        await self.check_counts("readyReplicas", "updatedReplicas", "availableReplicas")


@pytest.mark.slow
@given(STEPS, st.booleans())
@EXAMPLES
def test_a_replica_set_and_its_elder_cousin_always_get_there(told, elder):
    if elder:
        spec, resource = {"selector": {"app": "web"}}, REPLICATION_CONTROLLERS
    else:
        spec, resource = {}, REPLICA_SETS
    names = ["replicaset", "replicationcontroller", "garbagecollector"]
    play(names, lambda plane: Workload(plane, resource, **spec), told)


class Rollout(Updated):
    async def check(self):
        await super().check()
        sets = (await self.client.list(REPLICA_SETS, "default")).items
        assert sum(one["spec"]["replicas"] > 0 for one in sets) <= 1
        templates = [str(one["spec"]["template"]["spec"]) for one in sets]
        assert len(set(templates)) == len(templates), "two sets for one template"


@pytest.mark.slow
@given(STEPS, st.sampled_from(["RollingUpdate", "Recreate"]))
@example([("wait", 0.005), ("image", "v3"), ("restart", None), ("restart", None)], "Recreate")
@EXAMPLES
def test_a_deployment_always_gets_there(told, strategy):
    names = ["deployment", "replicaset", "garbagecollector"]
    play(names, lambda plane: Rollout(plane, DEPLOYMENTS, strategy={"type": strategy}), told)


class Ordinals(Updated):
    async def check(self):
        await super().check()
        names = {one["metadata"]["name"] for one in await self.living()}
        assert names == {f"web-{number}" for number in range(self.replicas)}


@pytest.mark.slow
@given(STEPS, st.sampled_from(["OrderedReady", "Parallel"]), st.integers(1, 2))
@EXAMPLES
def test_a_stateful_set_always_gets_there(told, policy, most):
    spec = {
        "serviceName": "web",
        "podManagementPolicy": policy,
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": most}},
    }
    names = ["statefulset", "garbagecollector"]
    play(names, lambda plane: Ordinals(plane, STATEFUL_SETS, **spec), told)


class Daemons(Workload):
    """Three nodes, some of them tainted or gone."""

    def __init__(self, plane, **spec):
        super().__init__(plane, DAEMON_SETS, replicas=None, **spec)
        self.open = set()

    async def begin(self):
        await self.do("node", ("n0", True))
        await super().begin()

    async def do(self, verb, value):
        match verb:
            case "node":
                name, is_open = value
                node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
                taints = [] if is_open else [{"key": "closed", "effect": "NoExecute"}]
                self.open = self.open | {name} if is_open else self.open - {name}
                try:
                    await self.client.get(NODES, "", name)
                except NotFound:
                    await self.client.create(NODES, node)
                patch = {"spec": {"taints": taints}}
                await self.client.patch(NODES, "", name, patch, patch_type="merge")
            case "no node":
                self.open.discard(value)
                await absent(self.client.delete(NODES, "", value), NotFound)
                # What the garbage collector of pods does with those that were bound there.
                for pod in await self.pods():
                    if target(pod) == value:
                        gone = self.client.delete(PODS, "default", pod["metadata"]["name"])
                        await absent(gone, NotFound)
            case _:
                await super().do(verb, value)

    async def check(self):
        living = [one for one in await self.living() if target(one) in self.open]
        assert sorted(map(target, living)) == sorted(self.open), "one on each node"
        assert {one["spec"]["containers"][0]["image"] for one in living} <= {self.image}
        found = await self.status()
        assert found["desiredNumberScheduled"] == found["numberReady"] == len(self.open)


def target(pod):
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return terms[0]["matchFields"][0]["values"][0]


NODE = st.sampled_from(["n0", "n1", "n2"])
DAEMON_STEPS = steps(
    st.tuples(st.just("node"), st.tuples(NODE, st.booleans())),
    st.tuples(st.just("no node"), NODE),
    st.tuples(st.just("image"), st.sampled_from(["v1", "v2"])),
    *POD_STEPS,
)


@pytest.mark.slow
@given(DAEMON_STEPS, st.sampled_from([{}, {"maxSurge": 1, "maxUnavailable": 0}]))
@EXAMPLES
def test_daemons_are_on_every_node_that_lets_them(told, rolling):
    spec = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    play(["daemonset"], lambda plane: Daemons(plane, **spec), told)


class Counted(Workload):
    """A Job, and how many of its pods have really ended how."""

    def __init__(self, plane, completions, parallelism, indexed, answers_lost):
        super().__init__(plane, JOBS, replicas=None, selector=None)
        self.completions, self.answers_lost = completions, answers_lost
        self.suspended = False
        self.ended = {"Succeeded": 0, "Failed": 0}
        self.spec |= {
            "completions": completions,
            "parallelism": min(parallelism, completions),
            "completionMode": "Indexed" if indexed else "NonIndexed",
            "backoffLimit": 100,
            "template": {
                "spec": {"containers": [{"name": "c", "image": "v1"}], "restartPolicy": "Never"}
            },
        }

    async def do(self, verb, value):
        match verb:
            case "succeed":
                await self.end("Succeeded", value)
            case "fail":
                await self.end("Failed", value)
            case "suspend":
                self.suspended |= value
                await self.change({"suspend": value})

    async def end(self, phase, most):
        ended = 0
        for pod in [one for one in await self.pods() if one["status"]["phase"] == "Pending"][:most]:
            patch = {"status": {"phase": phase}}
            name = pod["metadata"]["name"]
            try:
                await self.client.patch(PODS, "default", name, patch, subresource="status")
            except NotFound:
                continue
            self.ended[phase] += 1
            ended += 1
        return ended

    async def tend(self):
        await self.change({"suspend": False})
        if (await self.status()).get("completionTime"):
            return False
        await self.end("Succeeded", 1)
        await self.plane.settled(seconds=60)
        return True

    async def check(self):
        found = await self.status()
        kinds = {one["type"] for one in found["conditions"] if one["status"] == "True"}
        assert "Complete" in kinds
        if self.answers_lost:
            # Pods were made that nobody heard of; one of them may have succeeded beyond need, or
            # for an index that was done already.
            assert self.completions <= found["succeeded"] <= self.ended["Succeeded"]
        elif self.suspended:
            # A pod that a suspension stops is not counted, however it ended meanwhile.
            assert self.completions == found["succeeded"] <= self.ended["Succeeded"]
        else:
            assert found["succeeded"] == self.ended["Succeeded"] == self.completions
        assert self.suspended or found.get("failed", 0) >= self.ended["Failed"]
        assert found["uncountedTerminatedPods"] == {}
        for pod in await self.pods():
            assert not pod["metadata"].get("finalizers")


JOB_STEPS = steps(
    st.tuples(st.just("succeed"), COUNT),
    st.tuples(st.just("fail"), st.integers(0, 1)),
    st.tuples(st.just("suspend"), st.booleans()),
)


@pytest.mark.slow
@given(JOB_STEPS, st.integers(1, 5), st.integers(1, 3), st.booleans())
@EXAMPLES
def test_a_job_counts_every_completion_once(told, completions, parallelism, indexed):
    lost = any(verb == "writes" and Fate.UNANSWERED in value for verb, value in told)
    play(["job"], lambda plane: Counted(plane, completions, parallelism, indexed, lost), told)

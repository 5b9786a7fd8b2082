import importlib.util
import random
import re
from dataclasses import replace
from pathlib import Path

from sampan.api.resources import EVENTS, PODS
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.scheduler.loop import Scheduler
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.small_api import SmallApi

DOCUMENT = Path(__file__).parents[3] / "docs" / "scheduler.md"


def gang_of_the_docs(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    path = tmp_path / "gang.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("gang", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Gang


def story(test, *plugins, more=()):
    async def main():
        clock = LoopClock()
        api = SmallApi(clock)
        profile = replace(DEFAULT_PROFILE, plugins=tuple((cls, args, 1) for cls, args in plugins))
        scheduler = Scheduler(
            api, clock=clock, rng=random.Random(1), metrics=Metrics(), profiles=(profile, *more)
        )
        tasks = Tasks("test")
        tasks.start("scheduler", scheduler.run())
        try:
            await test(api, clock)
        finally:
            await tasks.stop()

    virtual_time.run(main())


def member(number, size="3"):
    return {"example.com/group": "g", "example.com/group-size": size, "number": str(number)}


def test_the_gang_of_the_documentation_starts_together_or_not_at_all(tmp_path):
    """[S3] Permit makes pods wait; a group that does not come together gives its places back."""

    async def test(api, clock):
        await api.node("a", cpu="2")
        for number in range(2):
            await api.pod(f"p{number}", cpu="1", labels=member(number))
        await clock.sleep(1)
        assert api.bindings == []
        await api.node("b", cpu="1")
        await api.pod("p2", cpu="1", labels=member(2))
        await clock.sleep(5)
        assert len(api.bindings) == 3

    story(test, (gang_of_the_docs(tmp_path), {"waitSeconds": 10}))


def test_a_gang_that_is_too_large_leaves_room_for_others(tmp_path):
    async def test(api, clock):
        await api.node("a", cpu="2")
        for number in range(2):
            await api.pod(f"p{number}", cpu="1", labels=member(number))
        await clock.sleep(1)
        await api.pod("single", cpu="2")
        await clock.sleep(60)
        assert "single" in [name for name, _ in api.bindings]
        told = [
            one["message"] for one in api.objects(EVENTS) if one["reason"] == "FailedScheduling"
        ]
        assert any(
            "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Gang."
            in one
            for one in told
        )

    story(test, (gang_of_the_docs(tmp_path), {"waitSeconds": 10}))


class Named(Plugin):
    """Only nodes whose name begins with the pod's name; the longest is the best."""

    def filter(self, pod, node):
        return None if node.name.startswith(pod["metadata"]["name"]) else "node(s) named otherwise"

    def score(self, pod, node):
        return len(node.name)


def test_a_plugin_filters_and_scores_node_by_node():
    """[S4]"""

    async def test(api, clock):
        for name in ("x", "p", "pp", "ppp"):
            await api.node(name)
        await api.pod("p")
        await api.pod("q")
        await clock.sleep(1)
        assert api.bindings == [("p", "ppp")]
        assert api.pod_scheduled("q")["message"].startswith(
            "0/4 nodes are available: 4 node(s) named otherwise. "
        )
        await api.node("q")
        await clock.sleep(5)
        assert ("q", "q") in api.bindings

    story(test, (Named, {}))


class Recording(Plugin):
    def _note(self, what, pod):
        self.args["log"].append((what, pod["metadata"]["name"]))

    def pre_enqueue(self, pod):
        return None if (pod["metadata"].get("labels") or {}).get("go") else "not told to go"

    def pre_filter(self, pod):
        self._note("pre_filter", pod)

    def reserve(self, pod, node):
        self._note("reserve", pod)

    def unreserve(self, pod, node):
        self._note("unreserve", pod)

    async def pre_bind(self, pod, node):
        self._note("pre_bind", pod)
        if pod["metadata"]["name"] == "bad" and len(self.args["log"]) < 5:
            raise OSError("the disk is full")

    async def bind(self, pod, node):
        self._note("bind", pod)
        return False

    async def post_bind(self, pod, node):
        self._note("post_bind", pod)

    def sort_key(self, pod):
        return (float(pod["metadata"]["labels"].get("turn", 0)),)


def test_the_extension_points_are_passed_in_their_order():
    """[S3]"""
    log = []

    async def test(api, clock):
        await api.node("a")
        await api.pod("held")
        await api.pod("good", labels={"go": "1"})
        await clock.sleep(1)
        names = ["pre_filter", "reserve", "pre_bind", "bind", "post_bind"]
        assert log == [(name, "good") for name in names]
        assert api.pod_scheduled("held")["reason"] == "SchedulingGated"
        made = api.find(PODS, "default", "held")
        labels = {"metadata": {"labels": {"go": "1"}}}
        await api.patch(PODS, "default", made["metadata"]["name"], labels, patch_type="merge")
        await clock.sleep(1)
        assert ("held", "a") in api.bindings

    story(test, (Recording, {"log": log}))


def test_a_step_that_fails_undoes_what_was_reserved():
    """[S3]"""
    log = []

    async def test(api, clock):
        await api.node("a", cpu="1")
        await api.pod("bad", cpu="1", labels={"go": "1"})
        await clock.sleep(10)
        assert ("unreserve", "bad") in log
        assert api.bindings == [("bad", "a")]

    story(test, (Recording, {"log": log}))


def test_pods_choose_their_profile():
    """[S1] Without the rule of resources anything goes; pods of a stranger are left alone."""
    loose = replace(
        DEFAULT_PROFILE,
        scheduler_name="loose",
        filters=tuple(one for one in DEFAULT_PROFILE.filters if one.name != "NodeResourcesFit"),
    )

    async def test(api, clock):
        await api.node("a", cpu="1")
        await api.pod("strict", cpu="2")
        await api.pod("loose", cpu="2", schedulerName="loose")
        await api.pod("other", schedulerName="other")
        await clock.sleep(2)
        assert api.bindings == [("loose", "a")]
        assert api.pod_scheduled("other") is None

    story(test, more=(loose,))


def test_what_scores_have_in_common_is_worked_out_once():
    """[S3] PreScore: once for each pod, before any node; who has nothing to say is not asked."""
    asked = []

    class Nearest(Plugin):
        def pre_score(self, pod, nodes, feasible):
            asked.append(("pre", pod["metadata"]["name"], int(feasible.sum())))
            self.best = max(row.name for row in nodes.rows)
            return pod["metadata"]["name"] != "other"

        def score(self, pod, node):
            asked.append(("score", pod["metadata"]["name"], node.name))
            return 100 * (node.name == self.best)

    async def test(api, clock):
        for name in "abc":
            await api.node(name)
        await api.pod("p")
        await clock.sleep(1)
        assert api.bindings == [("p", "c")]
        await api.pod("other")
        await clock.sleep(1)
        assert asked[0] == ("pre", "p", 3)
        assert [one for one in asked if one[1] == "other"] == [("pre", "other", 3)]

    story(test, (Nearest, {}))


def test_a_plugin_that_makes_room_nominates_the_node():
    """[S3] PostFilter: the pod is expected there; a node that is not there is passed over."""
    named = ["nowhere", "a"]

    class Remover(Plugin):
        def post_filter(self, pod, why):
            assert "Insufficient cpu" in why
            return named.pop(0) if named else None

    async def test(api, clock):
        await api.node("a", cpu="1")
        await api.node("b", cpu="1")
        await api.pod("old", cpu="1")
        await api.pod("older", cpu="1")
        await clock.sleep(1)
        await api.pod("p", cpu="1")
        await clock.sleep(1)
        assert "nominatedNodeName" not in api.find(PODS, "default", "p").get("status", {})
        await api.node("c", cpu="0")
        await api.patch(PODS, "default", "p", {"metadata": {"labels": {"a": "b"}}})
        await clock.sleep(20)
        assert api.find(PODS, "default", "p")["status"]["nominatedNodeName"] == "a"
        [on_a] = [name for name, node in api.bindings if node == "a"]
        await api.delete(PODS, "default", on_a, grace_seconds=0)
        await clock.sleep(20)
        assert ("p", "a") in api.bindings

    story(test, (Remover, {}))

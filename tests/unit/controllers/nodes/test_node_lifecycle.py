"""controllers/nodes/node_lifecycle.py: conditions become taints, silence becomes Unknown."""

import asyncio
import random

import pytest

from sampan.api import features
from sampan.api.errors import NotFound, ServiceUnavailable
from sampan.api.features import Release
from sampan.api.objects import copy_of, time_text
from sampan.api.resources import LEASES, NODES
from sampan.client.indexer import Cache
from sampan.controllers.actions import Patch, Record
from sampan.controllers.controller import View
from sampan.controllers.nodes import node_lifecycle as lifecycle

NOW = 1_700_000_000.0


def node(ready="True", taints=(), unschedulable=False, **conditions):
    listed = [{"type": "Ready", "status": ready, "lastHeartbeatTime": time_text(NOW - 5)}]
    listed += [{"type": kind, "status": status} for kind, status in conditions.items()]
    spec = {"taints": list(taints)} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    meta = {"name": "n1", "uid": "u1", "creationTimestamp": time_text(NOW - 100)}
    status = {"conditions": listed} if ready else {}
    return {"kind": "Node", "metadata": meta, "spec": spec, "status": status}


def pod(ready="True"):
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": "p", "namespace": "a", "uid": "p1"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": conditions},
    }


def pairs(taints):
    return [(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in taints]


def test_a_ready_node_loses_the_taint_that_it_was_registered_with():
    tainted = node(taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    [action] = lifecycle.plan(tainted, [], NOW, NOW).actions
    assert action.patch["spec"] == {"taints": None}
    assert lifecycle.plan(node(), [], NOW, NOW).actions == []


def test_conditions_become_taints_and_a_users_taints_stay():
    mine = {"key": "dedicated", "value": "gpu", "effect": "NoExecute"}
    taints = lifecycle.wanted_taints(
        node("False", [mine], unschedulable=True, MemoryPressure="True", DiskPressure="False"), NOW
    )
    assert taints[0] == mine
    assert pairs(taints[1:]) == [
        ("not-ready", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("not-ready", "NoExecute"),
    ]


def test_a_taint_that_stays_keeps_its_time():
    first = lifecycle.wanted_taints(node("False"), NOW)
    assert lifecycle.wanted_taints(node("False", first), NOW + 60) == first


def told(before, action):
    """The node after the patch of its conditions was written."""
    after = copy_of(before)
    after["status"]["conditions"] = action.patch["status"]["conditions"]
    return after


def test_a_silent_node_becomes_unknown():
    conditions, event = lifecycle.plan(node(), [pod()], NOW - 51, NOW).actions
    assert isinstance(conditions, Patch)
    by_type = {one["type"]: one for one in conditions.patch["status"]["conditions"]}
    assert by_type["Ready"]["reason"] == "NodeStatusUnknown"
    assert by_type["DiskPressure"]["reason"] == "NodeStatusNeverUpdated"
    assert isinstance(event, Record)
    assert event.reason == "NodeNotReady"


def test_an_unknown_node_is_tainted_and_its_pods_are_not_ready():
    silent = told(node(), lifecycle.plan(node(), [], NOW - 51, NOW).actions[0])
    found = lifecycle.plan(silent, [pod(), pod("False")], NOW - 51, NOW).actions
    taints, unready, event = found
    assert (event.type, event.reason, event.message) == (
        "Warning",
        "NodeNotReady",
        "Node is not ready",
    )
    assert pairs(taints.patch["spec"]["taints"]) == [
        ("unreachable", "NoSchedule"),
        ("unreachable", "NoExecute"),
    ]
    assert unready.patch["status"]["conditions"][0]["status"] == "False"


class Server:
    """The leases that there are: name → resourceVersion."""

    def __init__(self, **leases):
        self.leases, self.asked = leases, []

    async def get(self, resource, namespace, name):
        assert (resource, namespace) == (LEASES, "kube-node-lease")
        self.asked.append(name)
        if name not in self.leases:
            raise NotFound(f'leases "{name}" not found')
        if self.leases[name] is None:
            raise ServiceUnavailable("nobody there")
        return {"metadata": {"name": name, "resourceVersion": self.leases[name]}}


class Looks:
    """All nodes and their leases, as the caches show them; looked at when asked to."""

    def __init__(self, *names):
        self.now, self.attended = NOW, set()
        self.server = Server()
        self.controller = lifecycle.node_lifecycle_controller(
            lambda: self.now, attended=lambda name: name in self.attended
        )
        self.caches = {
            resource: Cache(self.controller.indices.get(resource, {}))
            for resource in (NODES, LEASES)
        }
        for name in names:
            self.report(name)

    def put(self, resource, obj):
        [(old, _, _)] = self.caches[resource].put(obj)
        return list(self.controller.wakes[resource](self.caches.__getitem__, old, obj))

    def report(self, name, status="True"):
        return self.put(NODES, {**node(status), "metadata": {"name": name, "uid": name}})

    def renew(self, name, when, revision="1"):
        meta = {"name": name, "namespace": "kube-node-lease", "uid": name}
        meta["resourceVersion"] = self.server.leases[name] = revision
        return self.put(LEASES, {"metadata": meta, "spec": {"renewTime": when}})

    def look(self, now, server=None):
        self.now = now
        view = View(self.caches.__getitem__, server or self.server, now, random.Random(1))
        return asyncio.run(self.controller.planned(view, lifecycle.AllNodes()))


def test_silence_is_judged_at_its_limit_and_a_renewal_begins_it_anew():
    looks = Looks("a", "b")
    looks.now = NOW + 36
    assert looks.renew("a", "1") == []
    assert looks.look(NOW + 45) == lifecycle.Plan([], again_seconds=5.0)
    silent = looks.look(NOW + 50)
    assert [action.name for action in silent.actions if isinstance(action, Patch)] == ["b"]
    looks.report("b", "Unknown")
    assert looks.look(NOW + 60) == lifecycle.Plan([], again_seconds=26.0)  # a's, at 36 + 50
    silent = looks.look(NOW + 86)
    assert [action.name for action in silent.actions if isinstance(action, Patch)] == ["a"]


def silent(plan):
    return [action.name for action in plan.actions if isinstance(action, Patch)]


@pytest.mark.kubernetes("1.37")
def test_nobody_is_called_silent_by_a_cache_that_is_behind():
    looks = Looks("a", "b")
    looks.renew("a", "1", revision="7")
    assert silent(looks.look(NOW + 90, Server(a="7", b="9"))) == []  # there is a lease of b
    behind = looks.look(NOW + 90, Server(a="8"))
    assert behind == lifecycle.Plan([], again_seconds=5.0)
    server = Server(a="7")
    assert silent(looks.look(NOW + 90, server)) == ["a", "b"]
    assert server.asked == ["a", "b"]
    with pytest.raises(ServiceUnavailable):
        looks.look(NOW + 90, Server(a=None))
    with features.used(Release("1.36")):
        assert silent(looks.look(NOW + 90, Server(a="8"))) == ["a", "b"], "without the gate"


def test_a_lease_that_is_written_but_not_renewed_is_no_sign_of_life():
    looks = Looks("a")
    looks.renew("a", "1")
    looks.now = NOW + 40
    looks.renew("a", "1")
    assert looks.look(NOW + 50).actions


def test_nobody_looks_while_no_node_can_fall_silent():
    looks = Looks("a")
    looks.report("a", "Unknown")
    assert looks.look(NOW + 10).again_seconds is None
    assert looks.renew("a", "2") == ["a"]
    assert looks.report("a")[0] == lifecycle.AllNodes()  # from now on again
    assert looks.look(NOW + 20).again_seconds == 40.0


def test_who_is_attended_to_is_not_looked_at_before_its_last_word():
    looks = Looks()
    looks.attended = {"a", "b"}
    assert looks.report("a") == ["a"]
    assert looks.report("b") == ["b"]
    looks.now = NOW + 1000
    assert looks.renew("b", "1") == []
    looks.attended = {"b"}
    assert looks.renew("a", "1") == [lifecycle.AllNodes()]
    assert looks.look(NOW + 1000) == lifecycle.Plan([], again_seconds=50.0)
    silent = looks.look(NOW + 1050)
    assert [action.name for action in silent.actions if isinstance(action, Patch)] == ["a"]
    looks.report("a", "Unknown")
    assert looks.look(NOW + 1060).again_seconds is None


def test_who_has_been_told_unknown_is_not_told_again():
    looks = Looks("a")
    looks.look(NOW)
    looks.report("a", "Unknown")
    looks.look(NOW + 10)
    assert looks.look(NOW + 100).actions == []


def test_a_node_that_never_reported_gets_its_start_up_grace():
    new = node(ready="")
    assert lifecycle.plan(new, [], NOW - 50, NOW).actions == ()
    conditions, *_ = lifecycle.plan(new, [], NOW - 61, NOW).actions
    reasons = {one["reason"] for one in conditions.patch["status"]["conditions"]}
    assert reasons == {"NodeStatusNeverUpdated"}


def test_a_plan_that_was_carried_out_leaves_nothing_to_do():
    after = told(node(), lifecycle.plan(node(), [], NOW - 51, NOW).actions[0])
    [taints] = lifecycle.plan(after, [], NOW - 51, NOW).actions
    after["spec"]["taints"] = taints.patch["spec"]["taints"]
    assert lifecycle.plan(after, [], NOW - 51, NOW).actions == []


def cluster(size):
    controller = lifecycle.node_lifecycle_controller(lambda: NOW)
    nodes = Cache(controller.indices[NODES])
    wake = controller.wakes[NODES]

    def changed(name, ready):
        new = {**node(ready), "metadata": {"name": name, "uid": name}}
        [(old, _, _)] = nodes.put(new)
        return list(wake(lambda _resource: nodes, old, new))

    return [changed(f"n{number}", "True") for number in range(size)], changed


def test_a_node_that_comes_or_reports_wakes_nobody_else():
    """With thousands of nodes, looking at all of them for each one was most of a start."""
    woken, changed = cluster(200)
    assert woken[0] == [lifecycle.AllNodes(), "n0"]
    assert woken[1:] == [[f"n{number}"] for number in range(1, 200)]
    assert changed("n7", "False") == ["n7"]  # one of many: the zone is as normal as it was
    assert changed("n7", "True") == ["n7"]


def test_a_zone_that_is_disrupted_or_well_again_wakes_all_that_are_not_ready():
    _, changed = cluster(4)
    assert changed("n0", "False") == ["n0"]
    assert changed("n1", "False") == ["n1"]
    assert sorted(changed("n2", "Unknown")) == ["n0", "n1", "n2", "n2"]  # three of four: partial
    assert sorted(changed("n3", "Unknown")) == ["n0", "n1", "n2", "n3", "n3"]  # all are down
    assert sorted(changed("n3", "True")) == ["n0", "n1", "n2", "n3"]
    assert sorted(changed("n2", "True")) == ["n0", "n1", "n2"]

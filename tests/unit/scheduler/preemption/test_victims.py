import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.decision.decide import filter_nodes
from sampan.scheduler.decision.nominated_pods import Nominator
from sampan.scheduler.model.assigned_pod import assigned_pod_of, once_assigned
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.preemption.budgets import budget_of
from sampan.scheduler.preemption.victims import (
    NEVER,
    NO_VICTIMS,
    NOT_HELPFUL,
    WAITING,
    Candidate,
    Hopeless,
    Preemptor,
    not_eligible,
    preempt,
    victims_on,
)
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import cache_of

STARTS = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z", "2026-01-02T00:00:00Z", None)
ZONES = ("a", "b")


def node(name, cpu, pods="110", zone="a", taints=()):
    return {
        "metadata": {"name": name, "labels": {"zone": zone, "kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": pods}},
    }


def pod(name, cpu, priority=0, labels=None, started=None, **spec):
    requests = {"cpu": str(cpu)} if cpu else {}
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    if port := spec.pop("port", None):
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    meta = {"name": name, "uid": name, "namespace": "default", "labels": labels or {}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": meta,
        "spec": {"containers": [container], "priority": priority, **spec},
        "status": {"startTime": started} if started else {},
    }  # fmt: skip


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
        ]
    }
}
EVEN = [
    {
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
]  # fmt: skip


@st.composite
def worlds(draw, *, with_demands):
    """Full nodes, budgets, a few nominated pods, and a pod that asks for much."""
    nodes, placed = [], {}
    extras = [{}, {"affinity": APART}, {"topologySpreadConstraints": EVEN}, {"port": 80}]
    some = lambda: draw(st.sampled_from(extras)) if with_demands else {}  # noqa: E731
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        taint = [{"key": "k", "effect": "NoSchedule"}]
        nodes.append(
            node(
                name, draw(st.integers(2, 6)), draw(st.sampled_from(("3", "110"))),
                draw(st.sampled_from(ZONES)), draw(st.sampled_from(((), (), (), taint))),
            )
        )  # fmt: skip
        placed[name] = [
            pod(
                f"{name}-{one}", draw(st.integers(0, 3)), draw(st.sampled_from((-5, 0, 3, 10, 20))),
                {"app": draw(st.sampled_from("ab"))}, draw(st.sampled_from(STARTS)), **some(),
            )
            for one in range(draw(st.integers(0, 5)))
        ]  # fmt: skip
    budgets = [
        {
            "metadata": {"namespace": "default"},
            "spec": {"selector": draw(st.sampled_from((None, {}, {"matchLabels": {"app": "a"}})))},
            "status": {
                "disruptionsAllowed": draw(st.integers(0, 2)),
                "disruptedPods": draw(st.sampled_from(({}, {"n0-0": "t"}))),
            },
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    expected = [
        (pod(f"expected-{one}", draw(st.integers(1, 2)), draw(st.sampled_from((0, 10, 30)))), "n0")
        for one in range(draw(st.integers(0, 1)))
    ]
    newcomer = pod("new", draw(st.integers(1, 5)), 10, {"app": "a"}, **some())
    return nodes, placed, budgets, expected, newcomer


@st.composite
def full_worlds(draw):
    """Equal nodes, full of equal pods: what decides are budgets, priorities, numbers and starts."""
    count = draw(st.integers(2, 4))
    nodes = [
        node(f"n{number}", 4, pods=draw(st.sampled_from(("4", "110")))) for number in range(count)
    ]
    extra = draw(st.sampled_from(({}, {}, {"port": 80})))
    placed = {
        f"n{number}": [
            pod(
                f"n{number}-{one}", draw(st.sampled_from((1, 1, 2))), draw(st.sampled_from((0, 3))),
                {"app": draw(st.sampled_from("ab"))}, draw(st.sampled_from(STARTS[:2])), **extra,
            )
            for one in range(draw(st.integers(2, 4)))
        ]
        for number in range(count)
    }  # fmt: skip
    budgets = [
        {
            "metadata": {"namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"disruptionsAllowed": draw(st.integers(0, 1)), "disruptedPods": {}},
        }
        for _ in range(draw(st.integers(0, 1)))
    ]
    expected = [(pod("expected", 0, 10), "n0")] if draw(st.booleans()) else []
    newcomer = pod("new", draw(st.integers(1, 4)), 10, {"app": "a"}, **extra)
    return nodes, placed, budgets, expected, newcomer


def asked_of(world):
    nodes, placed, budgets, expected, _ = world
    nominator = Nominator()
    for one, where in expected:
        nominator.put(assigned_pod_of(one), where)
    budgets = [budget_of(one) for one in budgets]
    return Preemptor(cache_of(nodes, placed), DEFAULT_PROFILE, budgets, nominator)


# The slow way: a new cache for every question.


def fits(world, name, on_it):
    nodes, placed, _, expected, newcomer = world
    coming = [one for one, where in expected if where == name and one["spec"]["priority"] >= 10]
    for more in ([], coming):
        cache = cache_of(nodes, placed | {name: [*on_it, *more]}).snapshot()
        feasible, _ = filter_nodes(pod_info_of(newcomer).shape, cache, DEFAULT_PROFILE)
        if not feasible[cache.at[name]]:
            return False
    return True


def importance(one):
    return (-one["spec"]["priority"], assigned_pod_of(one).started)


def beyond(pods, budgets):
    left = [one["status"]["disruptionsAllowed"] for one in budgets]
    found = []
    for one in pods:
        for number, budget in enumerate(budgets):
            if (
                budget["spec"]["selector"]
                and one["metadata"]["labels"]["app"] == "a"
                and one["metadata"]["name"] not in budget["status"]["disruptedPods"]
            ):
                left[number] -= 1
                if left[number] < 0:
                    found.append(one["metadata"]["name"])
    return set(found)


def reference_victims(world, name):
    _, placed, budgets, _, _ = world
    on_it = placed[name]
    lower = sorted((one for one in on_it if one["spec"]["priority"] < 10), key=importance)
    kept = [one for one in on_it if one not in lower]
    if not lower or not fits(world, name, kept):
        return None
    over = beyond(lower, budgets)
    victims = []
    for wanted in (True, False):
        for one in lower:
            if (one["metadata"]["name"] in over) is wanted:
                if fits(world, name, [*kept, one]):
                    kept.append(one)
                else:
                    victims.append(one)
    if not victims:
        return None
    victims.sort(key=importance)
    return victims, len([one for one in victims if one["metadata"]["name"] in over])


def preference(victims, violations):
    highest = victims[0]["spec"]["priority"]
    earliest = min(
        assigned_pod_of(one).started for one in victims if one["spec"]["priority"] == highest
    )
    total = sum(one["spec"]["priority"] + 2**31 for one in victims)
    return (violations, highest, total, len(victims), -earliest)


def hopeless_by_rule(world):
    """Nodes that no removal can open, by the rules that look at the node alone."""
    nodes, _, _, _, newcomer = world
    wants = pod_info_of(newcomer).shape.usage.requests
    return {
        one["metadata"]["name"]
        for one in nodes
        if one["spec"]["taints"]
        or int(one["status"]["allocatable"]["cpu"]) * 1000 < dict(wants).get("cpu", 0)
    }


def check(world):
    asked = asked_of(world)
    newcomer = pod_info_of(world[4])
    before = [(one.uid, one) for name in world[1] for one in asked.cache.on(name)]
    found = preempt(newcomer, asked, random.Random(1))
    assert [(one.uid, one) for name in world[1] for one in asked.cache.on(name)] == before
    expected = {name: reference_victims(world, name) for name in world[1]}
    expected = {name: one for name, one in expected.items() if one is not None}
    for name in hopeless_by_rule(world):
        assert name not in expected
    if not expected:
        assert isinstance(found, Hopeless)
        return
    assert isinstance(found, Candidate)
    best = min(preference(*one) for one in expected.values())
    victims, violations = expected[found.node]
    assert preference(victims, violations) == best
    assert [one.uid for one in found.victims] == [one["metadata"]["uid"] for one in victims]
    assert found.violations == violations


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(worlds(with_demands=False))
def test_victims_and_node_are_those_of_the_slow_way(world):
    """[S5]"""
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(full_worlds())
def test_victims_and_node_are_those_of_the_slow_way_where_all_nodes_are_alike(world):
    """[S5]"""
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(worlds(with_demands=True))
def test_victims_and_node_are_those_of_the_slow_way_with_neighbours(world):
    """[S5]"""
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(worlds(with_demands=False))
def test_all_nodes_at_once_find_what_one_by_one_finds(world):
    asked = asked_of(world)
    newcomer = pod_info_of(world[4])
    found = preempt(newcomer, asked, random.Random(1))
    if isinstance(found, Candidate):
        at = asked.cache.snapshot().at[found.node]
        assert victims_on(at, newcomer, asked) == found


def asked_for(nodes, placed, budgets=()):
    return Preemptor(cache_of(nodes, placed), DEFAULT_PROFILE, budgets, Nominator())


def test_a_node_whose_pods_are_all_as_important_has_no_victims():
    asked = asked_for([node("n", 2)], {"n": [pod("a", 2, 10)]})
    found = preempt(pod_info_of(pod("new", 2, 10)), asked, random.Random(1))
    assert found == Hopeless(((NO_VICTIMS, 1),))


def test_reasons_count_every_node_once():
    nodes = [node("small", 1), node("busy", 2), node("full", 2, pods="1")]
    placed = {"busy": [pod("a", 2, 10)], "full": [pod("b", 1, 10), pod("c", 0, 0)]}
    found = preempt(pod_info_of(pod("new", 2, 10)), asked_for(nodes, placed), random.Random(1))
    assert isinstance(found, Hopeless)
    assert dict(found.reasons) == {
        NOT_HELPFUL: 1, NO_VICTIMS: 1, "Insufficient cpu": 1, "Too many pods": 1
    }  # fmt: skip


def test_who_may_not_preempt():
    asked = asked_for([node("n", 2)], {"n": [pod("a", 2, 0)]})
    never = pod_info_of(pod("new", 2, 10, preemptionPolicy="Never"))
    assert not_eligible(never, asked.nominator, asked.cache) == NEVER
    allowed = pod_info_of(pod("new", 2, 10))
    assert not_eligible(allowed, asked.nominator, asked.cache) == ""


def test_who_waits_for_its_victims_preempts_nobody_else():
    going = pod("a", 2, 0)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    going["status"] = {"conditions": [condition]}
    asked = asked_for([node("n", 2)], {"n": [going]})
    newcomer = pod_info_of(pod("new", 2, 10))
    asked.nominator.put(once_assigned(newcomer), "n")
    assert not_eligible(newcomer, asked.nominator, asked.cache) == WAITING

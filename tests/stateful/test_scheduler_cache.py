"""The scheduler's columns, kept change by change, against columns made at once."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sampan.api.rules.host_ports import HostPort
from sampan.api.rules.node_selectors import Requirement, Requirements
from sampan.api.rules.tolerations import Taint
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.model.arrays import ABSENT
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.node_info import NodeInfo
from sampan.scheduler.model.pod_terms import Carried, Kind, PodSelector, PodTerm
from sampan.scheduler.model.requests import Usage

NODES = st.sampled_from(["n0", "n1", "n2"])
PODS = st.sampled_from(["a", "b", "c", "d"])
USAGES = st.builds(
    lambda cpu, gpu, ports: Usage(
        tuple(sorted({"cpu": cpu, "example.com/gpu": gpu}.items())), cpu, 7, ports
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([(), (HostPort("TCP", 80, "0.0.0.0"),), (HostPort("TCP", 80, "10.0.0.1"),)]),
)
BY_LABEL = PodSelector(
    frozenset({"default"}), None, Requirements([Requirement("app", "In", ("a",))])
)
BY_TEAM = PodSelector(
    frozenset(), Requirements([Requirement("team", "Exists", ())]), Requirements()
)
KINDS = [Kind((BY_LABEL,)), Kind((BY_LABEL,), with_terminating=False), Kind((BY_TEAM,))]
CARRIED = [
    Carried(PodTerm(BY_LABEL, "zone"), True, False, 0),
    Carried(PodTerm(BY_TEAM, "disk"), False, False, 5),
]
RESIDENTS = st.builds(
    AssignedPod,
    usage=USAGES,
    priority=st.integers(0, 2),
    namespace=st.sampled_from(["default", "other"]),
    labels=st.sampled_from([(), (("app", "a"),), (("app", "b"),)]),
    terminating=st.booleans(),
    carried=st.lists(st.sampled_from(CARRIED), max_size=2).map(tuple),
)
ROWS = st.builds(
    NodeInfo,
    name=NODES,
    allocatable=st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 9)),
    allowed_pods=st.integers(0, 3),
    labels=st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from(["x", "y"])),
    taints=st.frozensets(
        st.builds(Taint, st.sampled_from("ab"), st.just(""), st.just("NoSchedule")), max_size=2
    ),
    unschedulable=st.booleans(),
    images=st.dictionaries(st.just("web:latest"), st.integers(1, 9)),
)


class CacheMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.cache = CacheState()
        self.nodes, self.pods, self.assumed = {}, {}, set()
        self.namespace, self.asked = None, set()

    @rule(row=ROWS)
    def put_node(self, row):
        self.cache.put_node(row)
        self.nodes[row.name] = row

    @rule(name=NODES)
    def remove_node(self, name):
        self.cache.remove_node(name)
        self.nodes.pop(name, None)

    @rule(uid=PODS, node=NODES, pod=RESIDENTS)
    def put_pod(self, uid, node, pod):
        self.cache.put_pod(uid, node, pod)
        self.pods[uid] = (node, pod)
        self.assumed.discard(uid)

    @rule(uid=PODS, node=NODES, pod=RESIDENTS)
    def assume(self, uid, node, pod):
        if uid not in self.pods:
            self.cache.assume(uid, node, pod)
            self.pods[uid] = (node, pod)
            self.assumed.add(uid)

    @rule(uid=PODS)
    def forget(self, uid):
        self.cache.forget(uid)
        if uid in self.assumed:
            self.assumed.discard(uid)
            del self.pods[uid]

    @rule(uid=PODS)
    def remove_pod(self, uid):
        self.cache.remove_pod(uid)
        self.pods.pop(uid, None)
        self.assumed.discard(uid)

    @rule(key=st.sampled_from(["zone", "disk"]))
    def ask_for_a_label(self, key):
        self.cache.snapshot().label(key)
        self.cache.snapshot().image_bytes("web:latest")

    @rule(kind=st.sampled_from(KINDS))
    def ask_for_a_kind_of_pods(self, kind):
        self.cache.snapshot().pod_count(kind)
        self.asked.add(kind)

    @rule(labels=st.sampled_from([None, {}, {"team": "x"}]))
    def put_namespace(self, labels):
        self.cache.put_namespace("other", labels)
        self.namespace = labels

    @invariant()
    def the_columns_are_those_of_a_new_cache(self):
        fresh = CacheState()
        for row in self.nodes.values():
            fresh.put_node(row)
        for uid, (node, pod) in self.pods.items():
            fresh.put_pod(uid, node, pod)
        fresh.put_namespace("other", self.namespace)
        assert shown(self.cache, self.asked) == shown(fresh, self.asked)
        for priority in range(4):
            assert self.cache.any_below(priority) == fresh.any_below(priority)


def shown(cache, asked):
    """Everything a rule can see, per node."""
    nodes = cache.snapshot()
    found = {}
    had = {name for row in nodes.rows for name in row.allocatable}
    for at, row in enumerate(nodes.rows):
        assert nodes.at[row.name] == at
        labels = {
            key: row.labels[key]
            for key in ("zone", "disk")
            if nodes.label(key)[at] == nodes.label_value(row.labels.get(key, "")) != ABSENT
        }
        found[row.name] = {
            "row": row,
            "allocatable": {
                name: int(one[at]) for name, one in nodes.allocatable.items() if one[at]
            },
            "requested": {
                name: int(nodes.requested[name][at]) for name in had if nodes.requested[name][at]
            },
            "scored": (int(nodes.scored_cpu[at]), int(nodes.scored_memory[at])),
            "pods": (int(nodes.pods[at]), int(nodes.allowed_pods[at])),
            "unschedulable": bool(nodes.unschedulable[at]),
            "taints": nodes.taint_sets[int(nodes.taint_set[at])],
            "labels": labels,
            "counts": [int(nodes.pod_count(kind)[at]) for kind in KINDS if kind in asked],
            "carried": {
                term: int(nodes.carriers(term)[at])
                for term in {*nodes.carried("default"), *nodes.carried("other")}
                if nodes.carriers(term)[at]
            },
            "image": int(nodes.image_bytes("web:latest")[at]),
        }
        assert labels == dict(row.labels)
    return found, {port: dict(held) for port, held in nodes.ports.items()}


TestCacheMachine = pytest.mark.slow(CacheMachine.TestCase)
TestCacheMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

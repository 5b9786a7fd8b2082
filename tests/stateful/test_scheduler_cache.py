"""The scheduler's columns, kept change by change, against columns made at once."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sampan.scheduler.cache_state import CacheState
from sampan.scheduler.requests import HostPort, Usage
from sampan.scheduler.rows import NodeRow
from sampan.scheduler.tolerations import Taint

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
ROWS = st.builds(
    NodeRow,
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

    @rule(row=ROWS)
    def put_node(self, row):
        self.cache.put_node(row)
        self.nodes[row.name] = row

    @rule(name=NODES)
    def remove_node(self, name):
        self.cache.remove_node(name)
        self.nodes.pop(name, None)

    @rule(uid=PODS, node=NODES, usage=USAGES, priority=st.integers(0, 2))
    def put_pod(self, uid, node, usage, priority):
        self.cache.put_pod(uid, node, usage, priority)
        self.pods[uid] = (node, usage, priority)
        self.assumed.discard(uid)

    @rule(uid=PODS, node=NODES, usage=USAGES)
    def assume(self, uid, node, usage):
        if uid not in self.pods:
            self.cache.assume(uid, node, usage, 1)
            self.pods[uid] = (node, usage, 1)
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

    @invariant()
    def the_columns_are_those_of_a_new_cache(self):
        fresh = CacheState()
        for row in self.nodes.values():
            fresh.put_node(row)
        for uid, (node, usage, priority) in self.pods.items():
            fresh.put_pod(uid, node, usage, priority)
        assert shown(self.cache) == shown(fresh)
        for priority in range(4):
            assert self.cache.any_below(priority) == fresh.any_below(priority)


def shown(cache):
    """Everything a rule can see, per node."""
    nodes = cache.snapshot()
    found = {}
    for at, row in enumerate(nodes.rows):
        assert nodes.at[row.name] == at
        labels = {
            key: nodes.label_text(int(nodes.label(key)[at]))
            for key in ("zone", "disk")
            if nodes.label(key)[at] >= 0
        }
        found[row.name] = {
            "row": row,
            "allocatable": {
                name: int(one[at]) for name, one in nodes.allocatable.items() if one[at]
            },
            "requested": {name: int(one[at]) for name, one in nodes.requested.items() if one[at]},
            "scored": (int(nodes.scored_cpu[at]), int(nodes.scored_memory[at])),
            "pods": (int(nodes.pods[at]), int(nodes.allowed_pods[at])),
            "unschedulable": bool(nodes.unschedulable[at]),
            "taints": nodes.taint_sets[int(nodes.taint_set[at])],
            "labels": labels,
            "image": int(nodes.image_bytes("web:latest")[at]),
        }
        assert labels == dict(row.labels)
    return found, {port: dict(held) for port, held in nodes.ports.items()}


TestCacheMachine = pytest.mark.slow(CacheMachine.TestCase)
TestCacheMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

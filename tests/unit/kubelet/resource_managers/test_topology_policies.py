"""Merging of topology hints: by the fold, and the slow way over every combination."""

import gzip
import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.kubelet.resource_managers.numa import Hint, NumaNodes, count, mask_of
from sampan.kubelet.resource_managers.topology_policies import (
    BEST_EFFORT,
    NONE,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    TopologySettings,
    merged,
)

TWO = NumaNodes((0, 1))
FOUR = NumaNodes((0, 1, 2, 3), {
    0: (10, 11, 12, 12), 1: (11, 10, 12, 12), 2: (12, 12, 10, 11), 3: (12, 12, 11, 10),
})  # fmt: skip


def of(policy, **more):
    return TopologySettings(policy, **more)


@pytest.mark.parametrize("policy", [NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE])
def test_who_does_not_mind_is_admitted(policy):
    for hints in ([], [{}], [{"cpu": None}, {}]):
        assert merged(hints, TWO, of(policy))[1]


@pytest.mark.parametrize(
    ("policy", "best", "admitted"),
    [
        (BEST_EFFORT, Hint(0b01, True), True),
        (RESTRICTED, Hint(0b01, True), True),
        (SINGLE_NUMA_NODE, Hint(0b01, True), True),
    ],
)
def test_all_want_the_same_node(policy, best, admitted):
    hints = [Hint(0b01, True), Hint(0b11, False)]
    assert merged([{"cpu": hints}, {"gpu": hints}], TWO, of(policy)) == (best, admitted)


@pytest.mark.parametrize(
    ("policy", "admitted"), [(BEST_EFFORT, True), (RESTRICTED, False), (SINGLE_NUMA_NODE, False)]
)
def test_what_is_on_different_nodes_is_aligned_only_as_far_as_it_can_be(policy, admitted):
    cpu, gpu = [Hint(0b01, True), Hint(0b11, False)], [Hint(0b10, True), Hint(0b11, False)]
    best, may = merged([{"cpu": cpu}, {"gpu": gpu}], TWO, of(policy))
    assert may is admitted
    if policy == BEST_EFFORT:
        assert best == Hint(0b01, False)


@pytest.mark.parametrize(
    ("policy", "admitted"), [(BEST_EFFORT, True), (RESTRICTED, True), (SINGLE_NUMA_NODE, False)]
)
def test_what_needs_two_nodes_is_aligned_on_two_and_never_on_one(policy, admitted):
    hints = [Hint(0b11, True)]
    assert merged([{"cpu": hints}, {"gpu": hints}], TWO, of(policy))[1] is admitted


@pytest.mark.parametrize("policy", [BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE])
def test_what_cannot_be_served_is_not_preferred(policy):
    assert merged([{"gpu": []}], TWO, of(policy))[1] is (policy == BEST_EFFORT)


def test_close_nodes_before_far_ones_where_that_is_wanted():
    hints = [Hint(mask, True) for mask in (0b0101, 0b1100, 0b1001)]
    assert merged([{"cpu": hints}], FOUR, of(BEST_EFFORT))[0] == Hint(0b0101, True)
    closest = of(BEST_EFFORT, prefer_closest=True)
    assert merged([{"cpu": hints}], FOUR, closest)[0] == Hint(0b1100, True)


def slow(resources, numa, closest):
    """As upstream: every combination in turn, the better of two each time."""
    narrow = [[count(hint.mask) for hint in hints if hint.mask is not None] for hints in resources]
    wanted = max((min(found) for found in narrow if found), default=0)

    def fitter(one, other):
        if one.mask == other.mask:
            return one
        if closest and count(one.mask) == count(other.mask):
            near, far = numa.distance(one.mask), numa.distance(other.mask)
            if near != far:
                return one if near < far else other
            return one if one.mask < other.mask else other
        return one if (count(one.mask), one.mask) < (count(other.mask), other.mask) else other

    def better(current, candidate):
        if count(candidate.mask) == 0 or current is None:
            return current if count(candidate.mask) == 0 else candidate
        if current.preferred != candidate.preferred:
            return current if current.preferred else candidate
        have, could = count(current.mask), count(candidate.mask)
        if current.preferred or have > wanted:
            return fitter(current, candidate)
        if have == wanted:
            return fitter(current, candidate) if could == wanted else current
        if could > wanted:
            return current
        if could == wanted or could > have:
            return candidate
        return current if could < have else fitter(current, candidate)

    best = None
    for chosen in product(*resources):
        masks = [hint.mask for hint in chosen if hint.mask is not None]
        together = numa.everything
        for mask in masks:
            together &= mask
        preferred = all(hint.preferred for hint in chosen) and len(set(masks)) <= 1
        best = better(best, Hint(together, preferred))
    return best or Hint(numa.everything, False)


_hints = st.lists(
    st.builds(Hint, st.one_of(st.none(), st.integers(1, 15)), st.booleans()),
    min_size=1, max_size=5, unique=True,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(_hints, min_size=1, max_size=4), st.booleans())
def test_the_fold_finds_what_every_combination_finds(resources, closest):
    """[H5]"""
    providers = [{str(at): hints} for at, hints in enumerate(resources)]
    policy = of(BEST_EFFORT, prefer_closest=closest)
    assert merged(providers, FOUR, policy)[0] == slow(resources, FOUR, closest)


def test_eight_nodes_and_many_resources_take_no_time():
    eight = NumaNodes(tuple(range(8)))
    hints = [Hint(mask, count(mask) == 1) for mask in eight.masks()]
    providers = [{str(at): hints} for at in range(6)]  # 2.7e14 combinations
    assert merged(providers, eight, of(RESTRICTED)) == (Hint(0b1, True), True)


RECORDED = Path(__file__).parent / "recorded" / "topology_v1.35.8.jsonl.gz"


@pytest.mark.slow
def test_the_original_merges_the_same_hints_likewise():
    """[H5] Random hints on one to four NUMA nodes, and what upstream's policies made of them."""
    for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines():
        said = json.loads(line)
        numa = NumaNodes(tuple(said["nodes"]), dict(enumerate(said.get("distances") or ())))
        hints = [
            {name: found and [hint_of(item) for item in found] for name, found in each.items()}
            for each in said["providers"] or ()
        ]
        settings = of(said["policy"], prefer_closest=said.get("closest", False))
        assert merged(hints, numa, settings) == (hint_of(said["best"]), said["admit"]), line


def hint_of(said):
    nodes = said["mask"]
    return Hint(None if nodes is None else mask_of(nodes), said["preferred"])

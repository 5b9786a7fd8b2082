"""Domains: nodes that share the value of a label. Pure.

Job: sums over a domain, given back to each of its nodes.
"""

import numpy as np

from sampan.scheduler.model.arrays import ABSENT, BoolArray, IntArray


def domain_sums(domains: IntArray, amounts: IntArray) -> IntArray:
    """For each node, the sum over its domain; 0 for nodes that are in none."""
    if not len(domains) or not amounts.any():
        return np.zeros(len(domains), np.int64)
    shifted = domains - ABSENT  # nodes without the label share a domain, which is emptied
    sums = np.bincount(shifted, weights=amounts).astype(np.int64)
    sums[0] = 0
    return sums[shifted]


def domain_count(domains: IntArray, among: BoolArray) -> int:
    """How many different domains the nodes of `among` are in; those in none count as one."""
    there = domains[among] - ABSENT
    return int(np.count_nonzero(np.bincount(there))) if len(there) else 0


def in_domain(domains: IntArray) -> BoolArray:
    return np.not_equal(domains, ABSENT)

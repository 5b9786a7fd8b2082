"""Domains: nodes that share the value of a label. Pure.

Job: sums over a domain, given back to each of its nodes.
"""

import numpy as np

from sampan.scheduler.snapshot import ABSENT, BoolArray, IntArray


def domain_sums(domains: IntArray, amounts: IntArray) -> IntArray:
    """For each node, the sum over its domain; 0 for nodes that are in none."""
    if not len(domains) or not amounts.any():
        return np.zeros(len(domains), np.int64)
    there = in_domain(domains)
    sums = np.bincount(np.where(there, domains, 0), weights=np.where(there, amounts, 0))
    return np.where(there, sums[domains], 0).astype(np.int64)


def in_domain(domains: IntArray) -> BoolArray:
    return np.not_equal(domains, ABSENT)

"""Node selector terms over all nodes at once. Pure.

Job: a term → True where a node matches it. (node_selectors.py says the same for one node.)
"""

from collections.abc import Iterable

import numpy as np

from sampan.api.rules.node_selectors import NAME_FIELD, Requirement, Term, holds
from sampan.scheduler.model.arrays import ABSENT, BoolArray, IntArray, NodeLabels


def term_mask(term: Term, nodes: NodeLabels) -> BoolArray:
    if not term.labels and not term.fields:
        return np.zeros(len(nodes), np.bool_)
    matching = np.ones(len(nodes), np.bool_)
    for requirement in term.labels:
        matching &= label_mask(requirement, nodes)
    for requirement in term.fields:
        matching &= _field_mask(requirement, nodes)
    return matching


def any_term(terms: Iterable[Term], nodes: NodeLabels) -> BoolArray:
    one_of: BoolArray = np.zeros(len(nodes), np.bool_)
    for term in terms:
        one_of |= term_mask(term, nodes)
    return one_of


def label_mask(requirement: Requirement, nodes: NodeLabels) -> BoolArray:
    column = nodes.label(requirement.key)
    match requirement.operator:
        case "In":
            return _is_one_of(column, requirement, nodes)
        case "NotIn":
            return ~_is_one_of(column, requirement, nodes)
        case "Exists":
            return np.not_equal(column, ABSENT)
        case "DoesNotExist":
            return np.equal(column, ABSENT)
        case _:
            return _by_text(column, requirement, nodes)


def _is_one_of(column: IntArray, requirement: Requirement, nodes: NodeLabels) -> BoolArray:
    wanted = [nodes.label_value(value) for value in requirement.values]
    if len(wanted) == 1:
        return np.equal(column, wanted[0])
    return np.isin(column, wanted)


def _by_text(column: IntArray, requirement: Requirement, nodes: NodeLabels) -> BoolArray:
    """Gt and Lt: each different value is compared once."""
    values, positions = np.unique(column, return_inverse=True)
    texts = [None if value == ABSENT else nodes.label_text(int(value)) for value in values]
    held = np.array([holds(requirement, text) for text in texts], np.bool_)
    return held[positions]


def _field_mask(requirement: Requirement, nodes: NodeLabels) -> BoolArray:
    if requirement.key != NAME_FIELD:
        return np.full(len(nodes), holds(requirement, None), np.bool_)
    if requirement.operator not in ("In", "NotIn"):
        return np.full(len(nodes), holds(requirement, "a name"), np.bool_)
    named = np.zeros(len(nodes), np.bool_)
    for value in requirement.values:
        at = nodes.at.get(value)
        if at is not None:
            named[at] = True
    return named if requirement.operator == "In" else ~named

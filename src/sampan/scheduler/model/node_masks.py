"""Node selector terms over all nodes at once. Pure.

Job: a term → True where a node matches it. (node_selectors.py says the same for one node.)
"""

from collections.abc import Iterable

import numpy as np

from sampan.api.rules.node_selectors import NAME_FIELD, Requirement, Term, holds, whole_number
from sampan.scheduler.model.arrays import ABSENT, BoolArray, IntArray, NodeLabels


def term_mask(term: Term, nodes: NodeLabels) -> BoolArray:
    """Requirements may be thousands: of labels that no node has, all nodes say the same, and where
    no node is left nothing more is asked."""
    if not term.labels and not term.fields:
        return np.zeros(len(nodes), np.bool_)
    return all_hold(term.labels, nodes, (_field_mask(item, nodes) for item in term.fields))


def any_term(terms: Iterable[Term], nodes: NodeLabels) -> BoolArray:
    one_of: BoolArray = np.zeros(len(nodes), np.bool_)
    for term in terms:
        if any(same_for_all(item, nodes) is False for item in term.labels):
            continue
        one_of |= term_mask(term, nodes)
        if one_of.all():
            break
    return one_of


def all_hold(
    requirements: Iterable[Requirement], nodes: NodeLabels, more: Iterable[BoolArray] = ()
) -> BoolArray:
    matching: BoolArray = np.ones(len(nodes), np.bool_)
    for requirement in requirements:
        verdict = same_for_all(requirement, nodes)
        if verdict is None:
            matching &= label_mask(requirement, nodes)
        elif not verdict:
            return np.zeros(len(nodes), np.bool_)
        if verdict is None and not matching.any():
            return matching
    for mask in more:
        matching &= mask
    return matching


def same_for_all(requirement: Requirement, nodes: NodeLabels) -> bool | None:
    """What every node says, where none has the label; None: it depends on the node."""
    return None if nodes.has_label(requirement.key) else holds(requirement, None)


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
            return _by_number(requirement, nodes)


def _is_one_of(column: IntArray, requirement: Requirement, nodes: NodeLabels) -> BoolArray:
    wanted = [nodes.label_value(value) for value in requirement.values]
    if len(wanted) == 1:
        return np.equal(column, wanted[0])
    return np.isin(column, wanted)


def _by_number(requirement: Requirement, nodes: NodeLabels) -> BoolArray:
    """Gt and Lt; what is no whole number is neither."""
    limit = whole_number(requirement.values[0]) if len(requirement.values) == 1 else None
    if limit is None or requirement.operator not in ("Gt", "Lt"):
        return np.zeros(len(nodes), np.bool_)
    numbers, there = nodes.label_numbers(requirement.key)
    compare = np.greater if requirement.operator == "Gt" else np.less
    return there & compare(numbers, limit)


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

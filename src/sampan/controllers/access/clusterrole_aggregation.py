"""Cluster roles that gather others: their rules follow those that they select.

Job: compute an aggregated role's rules from the roles that its selectors match.
Invariant: the result depends on the roles alone, not on the order in which they were seen.
"""

from collections.abc import Iterable

import orjson

from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.resources import by_kind
from sampan.api.rules import selectors
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Caches, Controller, View

_found = by_kind("rbac.authorization.k8s.io/v1", "ClusterRole")
assert _found is not None
CLUSTER_ROLES = _found


def clusterrole_aggregation_controller() -> Controller:
    return Controller(
        name="clusterrole-aggregation-controller",
        component="clusterrole-aggregation-controller",
        aliases=("clusterrole-aggregation",),
        wakes={CLUSTER_ROLES: _gatherers},
        planned=_plan_key,
    )


def plan(role: Obj, roles: Iterable[Obj]) -> Plan:
    aggregation = role.get("aggregationRule")
    if not aggregation:
        return NOTHING
    rules = aggregate_rules(role, aggregation, roles)
    if rules == (role.get("rules") or []):
        return NOTHING
    return Plan([Update(CLUSTER_ROLES, {**role, "rules": rules})])


def aggregate_rules(role: Obj, aggregation: Obj, roles: Iterable[Obj]) -> list[Obj]:
    """As upstream: selector by selector, roles by name, each rule once, never its own."""
    others = sorted((item for item in roles if name_of(item) != name_of(role)), key=name_of)
    by_label: dict[tuple[str, str], list[Obj]] = {}
    for other in others:
        for label in labels_of(other).items():
            by_label.setdefault(label, []).append(other)
    rules: dict[bytes, Obj] = {}
    taken: set[str] = set()
    for given in aggregation.get("clusterRoleSelectors") or ():
        # There may be thousands of selectors: most ask for a label that no role has.
        wanted: dict[str, str] = given.get("matchLabels") or {}
        candidates = by_label.get(min(wanted.items()), ()) if wanted else others
        left = [other for other in candidates if name_of(other) not in taken]
        selector = selectors.from_object(given) if left else selectors.NOTHING
        for other in left:
            if selector.matches(labels_of(other)):
                taken.add(name_of(other))
                for rule in other.get("rules") or ():
                    rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
    return list(rules.values())


def _gatherers(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Any role may have entered or left any selection; there are few that gather."""
    return [name_of(role) for role in caches(CLUSTER_ROLES).all() if role.get("aggregationRule")]


async def _plan_key(view: View, key: str) -> Plan:
    role = view.cache(CLUSTER_ROLES).get(key)
    return NOTHING if role is None else plan(role, view.cache(CLUSTER_ROLES).all())

"""ClusterRole aggregation: a role with an aggregationRule has the rules of those it selects.

Job: compute an aggregated role's rules from the roles that its selectors match.
Invariant: the result depends on the roles alone, not on the order in which they were seen.
"""

from collections.abc import Iterable, Iterator

import orjson

from sampan.api.objects import Obj, labels_of, name_of
from sampan.api.resources import by_kind
from sampan.api.rules import selectors
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Caches, Controller, View
from sampan.core.tasks import give_way

_found = by_kind("rbac.authorization.k8s.io/v1", "ClusterRole")
assert _found is not None
CLUSTER_ROLES = _found
LOOKS_AT_ONCE = 2000  # at roles, labels and expressions: some milliseconds


def clusterrole_aggregation_controller() -> Controller:
    return Controller(
        name="clusterrole-aggregation-controller",
        component="clusterrole-aggregation-controller",
        aliases=("clusterrole-aggregation",),
        wakes={CLUSTER_ROLES: _gatherers},
        planned=_plan_key,
    )


def plan(role: Obj, rules: Iterable[Obj]) -> Plan:
    """`rules`: those that its selectors gather."""
    gathered = list(rules)
    if not role.get("aggregationRule") or gathered == (role.get("rules") or []):
        return NOTHING
    return Plan([Update(CLUSTER_ROLES, {**role, "rules": gathered})])


def rules_in_turns(role: Obj, roles: Iterable[Obj]) -> Iterator[list[Obj]]:
    """As upstream: selector by selector, roles by name, each rule once, never its own. Some rules
    (or none) a turn: of thousands of selectors each may have to look at every role."""
    others = sorted((item for item in roles if name_of(item) != name_of(role)), key=name_of)
    by_label = _by_label(others)
    known: set[bytes] = set()
    taken: set[str] = set()
    found: list[Obj] = []
    looks = 0
    for given in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        # There may be thousands of selectors: most ask for a label that no role has.
        wanted: dict[str, str] = given.get("matchLabels") or {}
        candidates = by_label.get(min(wanted.items()), ()) if wanted else others
        left = [other for other in candidates if name_of(other) not in taken]
        selector = selectors.from_object(given) if left else selectors.NOTHING
        chosen = [other for other in left if selector.matches(labels_of(other))]
        taken.update(map(name_of, chosen))
        found += _new_rules(chosen, known)
        looks += 1 + len(left) + len(given.get("matchExpressions") or ())
        if looks > LOOKS_AT_ONCE:
            yield found
            found, looks = [], 0
    yield found


def _by_label(roles: Iterable[Obj]) -> dict[tuple[str, str], list[Obj]]:
    found: dict[tuple[str, str], list[Obj]] = {}
    for role in roles:
        for label in labels_of(role).items():
            found.setdefault(label, []).append(role)
    return found


def _new_rules(roles: Iterable[Obj], known: set[bytes]) -> Iterator[Obj]:
    for rule in (rule for role in roles for rule in role.get("rules") or ()):
        text = orjson.dumps(rule, option=orjson.OPT_SORT_KEYS)
        if text not in known:
            known.add(text)
            yield rule


def _gatherers(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Any role may have entered or left any selection; there are few that gather."""
    return [name_of(role) for role in caches(CLUSTER_ROLES).all() if role.get("aggregationRule")]


async def _plan_key(view: View, key: str) -> Plan:
    role = view.cache(CLUSTER_ROLES).get(key)
    if role is None:
        return NOTHING
    rules: list[Obj] = []
    for turn, some in enumerate(rules_in_turns(role, view.cache(CLUSTER_ROLES).all())):
        if turn:
            await give_way()
        rules += some
    return plan(role, rules)

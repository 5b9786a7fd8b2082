"""The audit policy: how much of a request is noted, and when. Pure.

Job: a Policy object → for each request its level, the stages left out, and whether managed fields
    are left out.
Invariant: the first rule that matches decides; where none does, nothing is noted.
"""

from enum import IntEnum

from sampan.api.objects import Obj
from sampan.apiserver.authn.user import User
from sampan.apiserver.http.request import RequestInfo
from sampan.core.fast_dataclass import dataclass


class Level(IntEnum):
    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


_LEVELS = {"None": Level.NONE, "Metadata": Level.METADATA, "Request": Level.REQUEST,
           "RequestResponse": Level.REQUEST_RESPONSE}  # fmt: skip
LEVEL_NAMES = {level: name for name, level in _LEVELS.items()}
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


class BadPolicy(ValueError):
    """The audit policy cannot be read."""


@dataclass(frozen=True, slots=True)
class Ruled:
    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


NOTHING = Ruled(Level.NONE)


class AuditPolicy:
    def __init__(self, policy: Obj) -> None:
        """Raises BadPolicy."""
        if policy.get("kind") != "Policy" or not str(policy.get("apiVersion")).startswith(
            "audit.k8s.io/"
        ):
            raise BadPolicy("the audit policy is not a Policy of audit.k8s.io/v1")
        omitted = _stages(policy.get("omitStages"))
        managed = bool(policy.get("omitManagedFields"))
        rules = policy.get("rules")
        if not isinstance(rules, list) or not rules:
            raise BadPolicy("the audit policy has no rules")
        self._rules = [(rule, _rule(rule, omitted, managed)) for rule in rules]

    def ruled(self, user: User, verb: str, info: RequestInfo | None, path: str) -> Ruled:
        for rule, ruled in self._rules:
            if _matches(rule, user, verb, info, path):
                return ruled
        return NOTHING


def _rule(rule: Obj, omitted: frozenset[str], managed: bool) -> Ruled:
    level = _LEVELS.get(rule.get("level") or "")
    if level is None:
        raise BadPolicy(f"unknown audit level {rule.get('level')!r}")
    if rule.get("nonResourceURLs") and (rule.get("resources") or rule.get("namespaces")):
        raise BadPolicy("rules cannot apply to both regular resources and non-resource URLs")
    own = rule.get("omitManagedFields")
    return Ruled(
        level, omitted | _stages(rule.get("omitStages")), managed if own is None else bool(own)
    )


def _stages(given: list[str] | None) -> frozenset[str]:
    for item in given or ():
        if item not in STAGES:
            raise BadPolicy(f"unknown audit stage {item!r}")
    return frozenset(given or ())


def _matches(rule: Obj, user: User, verb: str, info: RequestInfo | None, path: str) -> bool:
    if rule.get("users") and user.name not in rule["users"]:
        return False
    if rule.get("userGroups") and not set(rule["userGroups"]) & set(user.groups):
        return False
    if rule.get("verbs") and verb not in rule["verbs"]:
        return False
    of_resources = rule.get("namespaces") or rule.get("resources")
    if info is not None and info.resource is not None:
        if rule.get("nonResourceURLs"):
            return False
        return not of_resources or _matches_resource(rule, info)
    if rule.get("nonResourceURLs"):
        return any(_matches_path(url, path) for url in rule["nonResourceURLs"])
    return not of_resources


def _matches_resource(rule: Obj, info: RequestInfo) -> bool:
    assert info.resource is not None
    if rule.get("namespaces") and info.namespace not in rule["namespaces"]:
        return False
    if not rule.get("resources"):
        return True
    for resource in rule["resources"]:
        if (resource.get("group") or "") != info.resource.group:
            continue
        names = resource.get("resourceNames") or ()
        if names and info.name not in names:
            continue
        wanted = resource.get("resources") or ()
        if not wanted or any(
            _matches_plural(pattern, info.resource.plural, info.subresource) for pattern in wanted
        ):
            return True
    return False


def _matches_plural(pattern: str, plural: str, subresource: str) -> bool:
    full = f"{plural}/{subresource}" if subresource else plural
    if pattern in ("*", full):
        return True
    of, slash, sub = pattern.partition("/")
    if not slash or not subresource:
        return False
    return (of == plural and sub == "*") or (of == "*" and sub == subresource)


def _matches_path(pattern: str, path: str) -> bool:
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern[:-1])

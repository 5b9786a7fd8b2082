"""FlowSchema matching: the priority level and flow of a request. Pure.

Job: match flow schemas in their order of precedence; the flow's distinguisher.
"""

from sampan.api.objects import Obj, name_of, uid_of
from sampan.apiserver.authn.user import ACCOUNT_PREFIX, User
from sampan.apiserver.http.request import RequestInfo
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Flow:
    schema: str
    schema_uid: str
    level: str
    distinguisher: str


class Schemas:
    def __init__(self, schemas: list[Obj]) -> None:
        self._ordered = sorted(
            schemas,
            key=lambda schema: (
                int((schema.get("spec") or {}).get("matchingPrecedence") or 1000),
                name_of(schema),
            ),
        )

    def flow(self, user: User, verb: str, info: RequestInfo | None, path: str) -> Flow | None:
        for schema in self._ordered:
            spec = schema.get("spec") or {}
            if any(_rule_matches(rule, user, verb, info, path) for rule in spec.get("rules") or ()):
                level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
                by = (spec.get("distinguisherMethod") or {}).get("type")
                word = ""
                if by == "ByUser":
                    word = user.name
                elif by == "ByNamespace" and info is not None:
                    word = info.namespace
                return Flow(name_of(schema), uid_of(schema), level, word)
        return None


def _rule_matches(rule: Obj, user: User, verb: str, info: RequestInfo | None, path: str) -> bool:
    if not any(_is_about(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info is not None and info.resource is not None:
        return any(_resource(item, verb, info) for item in rule.get("resourceRules") or ())
    return any(_path(item, verb, path) for item in rule.get("nonResourceRules") or ())


def _is_about(subject: Obj, user: User) -> bool:
    match subject.get("kind"):
        case "User":
            name = (subject.get("user") or {}).get("name")
            return name in ("*", user.name)
        case "Group":
            name = (subject.get("group") or {}).get("name")
            return name == "*" or name in user.groups
        case "ServiceAccount":
            account = subject.get("serviceAccount") or {}
            start = f"{ACCOUNT_PREFIX}{account.get('namespace')}:"
            if account.get("name") == "*":
                return user.name.startswith(start)
            return user.name == f"{start}{account.get('name')}"
    return False


def _in(value: str, words: list[str] | None) -> bool:
    return "*" in (words or ()) or value in (words or ())


def _resource(rule: Obj, verb: str, info: RequestInfo) -> bool:
    assert info.resource is not None
    full = info.resource.plural + (f"/{info.subresource}" if info.subresource else "")
    if not (
        _in(verb, rule.get("verbs"))
        and _in(info.resource.group, rule.get("apiGroups"))
        and _in(full, rule.get("resources"))
    ):
        return False
    if not info.namespace:
        return bool(rule.get("clusterScope"))
    return _in(info.namespace, rule.get("namespaces"))


def _path(rule: Obj, verb: str, path: str) -> bool:
    if not _in(verb, rule.get("verbs")):
        return False
    for url in rule.get("nonResourceURLs") or ():
        if url in ("*", path) or (url.endswith("*") and path.startswith(url[:-1])):
            return True
    return False

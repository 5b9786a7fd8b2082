"""ABAC: a file of policies, one JSON object per line; the first that matches allows.

Job: read the file's text; answer for a request. Pure.
Invariant: a line that is not understood stops the server from starting; it is never skipped.
"""

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Decision, UserRules
from sampan.core.fast_dataclass import dataclass

_READS = frozenset({"get", "list", "watch"})
_VERSION = "abac.authorization.kubernetes.io/v1beta1"


class BadPolicy(ValueError):
    """The policy file has a line that means nothing."""


@dataclass(frozen=True, slots=True)
class Policy:
    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    path: str = ""


def policies(text: str) -> list[Policy]:
    """Raises BadPolicy."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            found.append(_policy(orjson.loads(line)))
        except (ValueError, TypeError, AttributeError) as error:
            raise BadPolicy(f"ABAC policy, line {number}: {error}") from error
    return found


class Abac:
    def __init__(self, known: list[Policy]) -> None:
        self._policies = known

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if any(_matches(policy, attributes) for policy in self._policies):
            return Decision.ALLOW, ""
        return Decision.NO_OPINION, "No policy matched."

    def rules(self, user: User, namespace: str) -> UserRules:
        found: list[Obj] = []
        for policy in self._policies:
            if not _is_about(policy, user):
                continue
            verbs = sorted(_READS) if policy.readonly else ["*"]
            if policy.resource and policy.namespace in ("*", namespace):
                found.append(
                    {
                        "verbs": verbs,
                        "apiGroups": [policy.api_group],
                        "resources": [policy.resource],
                    }
                )
            if policy.path:
                found.append({"verbs": verbs, "nonResourceURLs": [policy.path]})
        return UserRules(found)


def _policy(line: Obj) -> Policy:
    if line.get("apiVersion") != _VERSION or line.get("kind") != "Policy":
        raise ValueError(f"not a Policy of {_VERSION}")
    spec = line["spec"]
    policy = Policy(
        user=spec.get("user") or "",
        group=spec.get("group") or "",
        readonly=bool(spec.get("readonly")),
        api_group=spec.get("apiGroup") or "",
        resource=spec.get("resource") or "",
        namespace=spec.get("namespace") or "",
        path=spec.get("nonResourcePath") or "",
    )
    # As upstream: * for user or group stands for everybody who is authenticated.
    if policy.user == "*" or policy.group == "*":
        return Policy("", "system:authenticated", policy.readonly, policy.api_group,
                      policy.resource, policy.namespace, policy.path)  # fmt: skip
    return policy


def _is_about(policy: Policy, user: User) -> bool:
    if not policy.user and not policy.group:
        return False
    if policy.user and policy.user != user.name:
        return False
    return not policy.group or policy.group in user.groups


def _matches(policy: Policy, asked: Attributes) -> bool:
    if not _is_about(policy, asked.user) or (policy.readonly and asked.verb not in _READS):
        return False
    if asked.path:
        if policy.path == "*" or policy.path == asked.path:
            return True
        return policy.path.endswith("*") and asked.path.startswith(policy.path[:-1])
    return (
        policy.namespace in ("*", asked.namespace)
        and policy.resource in ("*", asked.resource)
        and policy.api_group in ("*", asked.group)
    )

"""The chain of authorizers: may this user do that?

Job: ask each authorizer in turn; the first that allows or denies decides, nobody → 403.
Invariant: no opinion is not a yes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from sampan.api.errors import Forbidden, qualified
from sampan.api.objects import Obj
from sampan.apiserver.authn.user import MASTERS, User


class Decision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked: a verb on a resource, or on a path outside the resources."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # set for nonresource requests only


Authorizer = Callable[[Attributes], tuple[Decision, str]]


def masters(attributes: Attributes) -> tuple[Decision, str]:
    """As upstream's privileged group: system:masters may do everything, whatever else is set."""
    if MASTERS in attributes.user.groups:
        return Decision.ALLOW, ""
    return Decision.NO_OPINION, ""


class Authorization:
    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def decide(self, attributes: Attributes) -> tuple[bool, str]:
        reasons: list[str] = []
        for authorizer in self._authorizers:
            decision, reason = authorizer(attributes)
            if decision is not Decision.NO_OPINION:
                return decision is Decision.ALLOW, reason
            if reason:
                reasons.append(reason)
        return False, "; ".join(reasons)

    def require(self, attributes: Attributes) -> None:
        allowed, reason = self.decide(attributes)
        if not allowed:
            raise refusal(attributes, reason)


def refusal(attributes: Attributes, reason: str) -> Forbidden:
    """403, worded as upstream words it."""
    user, verb = attributes.user.name, attributes.verb
    if attributes.path:
        said = f'forbidden: User "{user}" cannot {verb} path "{attributes.path}"'
        return Forbidden(f"{said}: {reason}" if reason else said)
    plural = attributes.resource
    full = f"{plural}/{attributes.subresource}" if attributes.subresource else plural
    scope = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    named = f' "{attributes.name}"' if attributes.name else ""
    message = (
        f'{qualified(plural, attributes.group)}{named} is forbidden: User "{user}" cannot {verb} '
        f'resource "{full}" in API group "{attributes.group}" {scope}'
    )
    details: Obj = {"kind": plural}
    if attributes.name:
        details["name"] = attributes.name
    if attributes.group:
        details["group"] = attributes.group
    return Forbidden(f"{message}: {reason}" if reason else message, details=details)

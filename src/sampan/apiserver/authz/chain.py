"""The chain of authorizers: allowed or denied.

Job: ask each authorizer in turn; the first that allows or denies decides, nobody → 403.
Invariant: no opinion is not a yes.
To add an authorizer: a file beside this one, and a line in modes.py.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from enum import Enum

from sampan.api.errors import Forbidden, qualified_resource
from sampan.api.objects import Obj
from sampan.apiserver.authn.user import MASTERS, User
from sampan.core.bounded import Bounded
from sampan.core.fast_dataclass import dataclass

MOST_KNOWN = 8192


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
    field_selector: str = ""  # of a list or watch


@dataclass(frozen=True, slots=True)
class UserRules:
    """What an authorizer knows of a user's rights, as rules."""

    rules: Sequence[Obj] = ()
    incomplete: bool = False
    trouble: str = ""


Opinion = tuple[Decision, str]
# One that must ask somebody returns an awaitable; the others cost one plain call.
Authorizer = Callable[[Attributes], Opinion | Awaitable[Opinion]]
Rules = Callable[[User, str], UserRules]  # (user, namespace) → what it may do there


def masters(attributes: Attributes) -> tuple[Decision, str]:
    """As upstream's privileged group: system:masters may do everything, whatever else is set."""
    if MASTERS in attributes.user.groups:
        return Decision.ALLOW, ""
    return Decision.NO_OPINION, ""


# (user, groups, verb, group, resource, subresource, namespace)
Kind = tuple[str, tuple[str, ...], str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class AuthorizerChain:
    authorizers: tuple[Authorizer, ...]
    rules: tuple[Rules, ...] = ()
    # Whether what this user may do holds until it is said that something has changed.
    steady: Callable[[User], bool] | None = None


class Authorization:
    """Remembers what is allowed whatever the object's name, where `steady` says that this holds
    until `forget` is called."""

    def __init__(
        self,
        authorizers: Sequence[Authorizer],
        rules: Sequence[Rules] = (),
        steady: Callable[[User], bool] | None = None,
    ) -> None:
        self._chain = AuthorizerChain(tuple(authorizers), tuple(rules), steady)
        self.known: Bounded[Kind, str] = Bounded(MOST_KNOWN)

    def replace(self, chain: AuthorizerChain) -> None:
        self._chain = chain
        self.forget()

    def forget(self) -> None:
        self.known.clear()

    async def remember(self, kind: Kind, attributes: Attributes, reason: str) -> None:
        """After a yes: if it would be one without a name, it is one for every name."""
        steady = self._chain.steady
        if steady is None or not steady(attributes.user) or len(attributes.namespace) > 253:
            return
        if attributes.name:
            nameless = replace(attributes, name="", field_selector="")
            allowed, reason = await self.decide(nameless)
            if not allowed:
                return
        self.known[kind] = reason

    def rules(self, user: User, namespace: str) -> UserRules:
        """What every authorizer knows, together."""
        known = [item(user, namespace) for item in self._chain.rules]
        trouble = [item.trouble for item in known if item.trouble]
        return UserRules(
            [rule for item in known for rule in item.rules],
            any(item.incomplete for item in known),
            ", ".join(trouble),
        )

    async def decide(self, attributes: Attributes) -> tuple[bool, str]:
        allowed, _, reason = await self.review(attributes)
        return allowed, reason

    async def review(self, attributes: Attributes) -> tuple[bool, bool, str]:
        """(allowed, denied outright, why)."""
        reasons: list[str] = []
        for authorizer in self._chain.authorizers:
            opinion = authorizer(attributes)
            decision, reason = opinion if isinstance(opinion, tuple) else await opinion
            if decision is not Decision.NO_OPINION:
                return decision is Decision.ALLOW, decision is Decision.DENY, reason
            if reason:
                reasons.append(reason)
        return False, False, ", ".join(reasons)

    async def require(self, attributes: Attributes) -> str:
        """Why it is allowed. Raises Forbidden."""
        allowed, _, reason = await self.review(attributes)
        if not allowed:
            raise refusal(attributes, reason)
        return reason


def refusal(attributes: Attributes, reason: str) -> Forbidden:
    """403, worded as upstream words it."""
    user, verb = attributes.user.name, attributes.verb
    if attributes.path:
        said = f'forbidden: User "{user}" cannot {verb} path "{attributes.path}"'
        return Forbidden(f"{said}: {reason}" if reason else said, details={})
    plural = attributes.resource
    full = f"{plural}/{attributes.subresource}" if attributes.subresource else plural
    scope = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    named = f' "{attributes.name}"' if attributes.name else ""
    message = (
        f"{qualified_resource(plural, attributes.group)}{named} is forbidden: "
        f'User "{user}" cannot {verb} '
        f'resource "{full}" in API group "{attributes.group}" {scope}'
    )
    details: Obj = {"kind": plural}
    if attributes.name:
        details["name"] = attributes.name
    if attributes.group:
        details["group"] = attributes.group
    return Forbidden(f"{message}: {reason}" if reason else message, details=details)

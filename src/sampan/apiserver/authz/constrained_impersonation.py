"""Constrained impersonation: who may speak as whom, and what may be asked while doing so.

Job: who asks, who is wanted and what is asked → the modes that apply, in upstream's order, and what
    each takes; ask the authorizers until one mode is allowed.
Invariant: a mode is allowed only if every one of its checks is; legacy impersonation comes last, so
    that whoever may do it still may.
Invariant: no mode but the legacy one gives system:masters, an empty group or an empty extra value.
Owner: HttpEdge has one `Impersonation`, which remembers for every caller which mode worked last.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from sampan.api.errors import FieldError, Forbidden
from sampan.api.go_quoting import quoted
from sampan.api.validation.fields import validate_prefixed_path
from sampan.apiserver.authn.user import (
    ACCOUNTS_GROUP,
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODES_GROUP,
    UNAUTHENTICATED,
    User,
    account_of,
    node_of,
)
from sampan.apiserver.authz.chain import Attributes, refusal
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass, replace
from sampan.core.metrics import Metrics

LEGACY = "legacy"
NODE_NAME = "authentication.kubernetes.io/node-name"
_ASSOCIATED, _ARBITRARY = "associated-node", "arbitrary-node"
_ACCOUNT, _USER_INFO = "serviceaccount", "user-info"
_ASSOCIATED_KEYS = "authentication.kubernetes.io/associated-node-keys"
_GROUP = "authentication.k8s.io"
_MANY = 4  # so many groups or extra values are first asked for as `*`
_MOST_REMEMBERED = 10_000
_SECONDS = tuple(0.001 * 2**power for power in range(15))

Authorize = Callable[[Attributes], Awaitable[None]]  # raises Forbidden


@dataclass(frozen=True, slots=True)
class Check:
    """All of `each` must be allowed, or `instead`. `never` says why nobody is even asked."""

    each: tuple[Attributes, ...]
    instead: Attributes | None = None
    never: str = ""


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    checks: tuple[Check, ...]
    user: User  # who the caller is, once all of it is allowed

    @property
    def constraint(self) -> str:
        """As audit events tell it."""
        return "" if self.name == LEGACY else f"impersonate:{self.name}"


def modes(wanted: User, asked: Attributes) -> dict[str, Mode]:
    """Those that apply, in the order in which they are tried."""
    bare = not (wanted.uid or wanted.groups or wanted.extra)
    node, account = node_of(wanted.name), account_of(wanted.name)
    found = []
    if node and bare and _is_on(node, asked.user):
        about = replace(asked, user=_without_extra(asked.user))
        found.append(_constrained(_ASSOCIATED, wanted, about))
    if node and bare:
        found.append(_constrained(_ARBITRARY, wanted, asked))
    if account and bare:
        found.append(_constrained(_ACCOUNT, wanted, asked))
    if not node and not account:
        found.append(_constrained(_USER_INFO, wanted, asked))
    found.append(_legacy(wanted, asked.user))
    return {mode.name: mode for mode in found}


def _is_on(node: str, caller: User) -> bool:
    """A service account whose token says that its pod is on that node."""
    return account_of(caller.name) is not None and caller.extra.get(NODE_NAME) == (node,)


def _without_extra(caller: User) -> User:
    """What was asked of one node must hold for all of them: only the names of the keys stay."""
    return replace(caller, extra={_ASSOCIATED_KEYS: tuple(sorted(caller.extra))})


def _constrained(name: str, wanted: User, asked: Attributes) -> Mode:
    doing = replace(asked, verb=f"impersonate-on:{name}:{asked.verb}")
    base = Attributes(asked.user, f"impersonate:{name}", _GROUP)
    node, account = node_of(wanted.name), account_of(wanted.name)
    groups = wanted.groups
    if node:
        named = "*" if name == _ASSOCIATED else node
        who = replace(base, resource="nodes", name=named)
        groups = (NODES_GROUP,)
    elif account:
        who = replace(base, resource="serviceaccounts", namespace=account[0], name=account[1])
        groups = (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{account[0]}")
    else:
        who = replace(base, resource="users", name=wanted.name)
    checks = [Check((doing,)), Check((who,)), *_uid_checks(base, wanted)]
    checks += _group_checks(replace(base, resource="groups"), wanted.groups)
    checks += _extra_checks(replace(base, resource="userextras"), wanted.extra)
    return Mode(name, tuple(checks), _with_system_group(wanted, groups))


def _uid_checks(base: Attributes, wanted: User) -> list[Check]:
    if not wanted.uid:
        return []
    return [Check((replace(base, group=_GROUP, resource="uids", name=wanted.uid),))]


def _group_checks(base: Attributes, groups: Sequence[str]) -> Iterator[Check]:
    if "" in groups:
        yield Check((base,), never="impersonating the empty string group is not allowed")
    if MASTERS in groups:
        named = replace(base, name=MASTERS)
        yield Check((named,), never="impersonating the system:masters group is not allowed")
    every = replace(base, name="*") if len(groups) >= _MANY else None
    yield Check(tuple(replace(base, name=group) for group in groups), every)


def _extra_checks(base: Attributes, extra: Mapping[str, Sequence[str]]) -> Iterator[Check]:
    wrong = _wrong_extra(extra)
    if wrong:
        yield Check((base,), never=wrong)
    is_many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
    every = replace(base, subresource="*", name="*") if is_many else None
    yield Check(_each_value(base, extra), every)


def _each_value(base: Attributes, extra: Mapping[str, Sequence[str]]) -> tuple[Attributes, ...]:
    return tuple(
        replace(base, subresource=key, name=value)
        for key, values in extra.items()
        for value in values
    )


def _wrong_extra(extra: Mapping[str, Sequence[str]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        errors: list[FieldError] = []
        validate_prefixed_path(key, "extra.key", errors)
        if errors:
            said = list(dict.fromkeys(map(str, errors)))
            told = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
            return f"impersonating an invalid key in extra is not allowed: {told}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _legacy(wanted: User, caller: User) -> Mode:
    base = Attributes(caller, "impersonate")
    account, groups = account_of(wanted.name), wanted.groups
    if account:
        who = replace(base, resource="serviceaccounts", namespace=account[0], name=account[1])
        groups = groups or (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{account[0]}")
    else:
        who = replace(base, resource="users", name=wanted.name)
    named = tuple(replace(base, resource="groups", name=group) for group in wanted.groups)
    extra = _each_value(replace(base, group=_GROUP, resource="userextras"), wanted.extra)
    checks = (Check((who,)), *_uid_checks(base, wanted), Check(named), Check(extra))
    return Mode(LEGACY, checks, _with_system_group(wanted, groups))


def _with_system_group(wanted: User, groups: tuple[str, ...]) -> User:
    if wanted.name == ANONYMOUS.name:
        own = UNAUTHENTICATED
    else:
        own = UNAUTHENTICATED if UNAUTHENTICATED in groups else AUTHENTICATED
    return replace(wanted, groups=groups if own in groups else (*groups, own))


class Impersonation:
    """Asks the authorizers, and counts."""

    def __init__(self, authorize: Authorize, metrics: Metrics, clock: Clock) -> None:
        self._authorize, self._clock = authorize, clock
        self._last: Bounded[str, str] = Bounded(_MOST_REMEMBERED)  # caller → mode that worked
        labels = ("mode", "decision")
        self._attempts = metrics.counter(
            "apiserver_impersonation_attempts_total",
            "Total number of impersonation attempts split by mode and decision.",
            labels,
        )
        self._attempt_seconds = metrics.histogram(
            "apiserver_impersonation_attempts_duration_seconds",
            "Latency of impersonation attempts in seconds split by mode and decision.",
            labels,
            _SECONDS,
        )
        self._checks = metrics.counter(
            "apiserver_impersonation_authorization_attempts_total",
            "Total number of authorization checks of impersonation, by mode and decision.",
            labels,
        )
        self._check_seconds = metrics.histogram(
            "apiserver_impersonation_authorization_attempts_duration_seconds",
            "Latency of authorization checks of impersonation in seconds, by mode and decision.",
            labels,
            _SECONDS,
        )

    async def allowed(self, wanted: User, asked: Attributes) -> Mode:
        """The first mode that is. Raises Forbidden, with what the first one lacked."""
        started = self._clock.monotonic()
        try:
            mode = await self._first_allowed(wanted, asked)
        except Forbidden:
            self._note_attempt("", "denied", started)
            raise
        self._note_attempt(mode.name, "allowed", started)
        return mode

    async def _first_allowed(self, wanted: User, asked: Attributes) -> Mode:
        caller = asked.user.name
        found = modes(wanted, asked)
        last = found.pop(self._last.get(caller, ""), None)
        first: Forbidden | None = None
        for mode in found.values() if last is None else (last, *found.values()):
            try:
                await self._ask(mode)
            except Forbidden as refused:
                first = first or refused
                continue
            if mode is not last:
                self._last[caller] = mode.name
            return mode
        assert first is not None, "the legacy mode always applies"
        raise first

    async def _ask(self, mode: Mode) -> None:
        """Raises Forbidden."""
        for check in mode.checks:
            if check.never:
                raise refusal(check.each[0], check.never)
            if check.instead is not None and await self._may(mode, check.instead):
                continue
            for attributes in check.each:
                await self._require(mode, attributes)

    async def _may(self, mode: Mode, attributes: Attributes) -> bool:
        try:
            await self._require(mode, attributes)
        except Forbidden:
            return False
        return True

    async def _require(self, mode: Mode, attributes: Attributes) -> None:
        started = self._clock.monotonic()
        decision = "denied"
        try:
            await self._authorize(attributes)
            decision = "allowed"
        finally:
            self._checks.add(mode.name, decision)
            self._check_seconds.observe(self._clock.monotonic() - started, mode.name, decision)

    def _note_attempt(self, mode: str, decision: str, started: float) -> None:
        self._attempts.add(mode, decision)
        self._attempt_seconds.observe(self._clock.monotonic() - started, mode, decision)

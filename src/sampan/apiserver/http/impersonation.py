"""Impersonation: the Impersonate-* headers.

Job: the Impersonate-* headers → the user they name, and what must be allowed for it. Pure.
Invariant: whoever impersonates has nothing left of their own groups.
Invariant: one header line names one group: a comma is part of its name, as upstream.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from sampan.api.errors import BadRequest
from sampan.api.go_quoting import quoted
from sampan.apiserver.authn.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User, account_of
from sampan.apiserver.authz.chain import Attributes
from sampan.core.http.messages import Request

_USER, _GROUP, _UID = "impersonate-user", "impersonate-group", "impersonate-uid"
_EXTRA = "impersonate-extra-"


def is_asked(headers: Mapping[str, str]) -> bool:
    # One look at all names at once: this is asked of every request.
    if "\nimpersonate-" not in "\n" + "\n".join(headers):
        return False
    return bool(headers.get(_USER)) or any(
        headers[key] for key in headers if key.startswith((_GROUP, _UID, _EXTRA))
    )


def wanted_user(request: Request) -> User:
    """The one in the headers as they are, for ConstrainedImpersonation. Raises BadRequest."""
    wanted = _named_user(request)
    if not wanted.name:
        raise BadRequest(f"requested {_as_go_prints(wanted)} without impersonating a user name")
    return wanted


def _named_user(request: Request) -> User:
    """Raises BadRequest."""
    headers = request.headers
    extra = {
        unquote(key[len(_EXTRA) :]): tuple(request.values(key))
        for key in headers
        if key.startswith(_EXTRA)
    }
    if len(request.values(_USER)) > 1 or len(request.values(_UID)) > 1:
        raise BadRequest("requested impersonation of more than one user")
    groups = tuple(request.values(_GROUP))
    return User(headers.get(_USER, ""), groups, headers.get(_UID, ""), extra)


def _as_go_prints(wanted: User) -> str:
    """As Go prints its structure (%#v)."""

    def strings(values: Iterable[str]) -> str:
        return "{" + ", ".join(map(quoted, values)) + "}"

    groups = f"[]string{strings(wanted.groups)}" if wanted.groups else "[]string(nil)"
    pairs = (f"{quoted(key)}:[]string{strings(wanted.extra[key])}" for key in sorted(wanted.extra))
    extra = "{" + ", ".join(pairs) + "}" if wanted.extra else "(nil)"
    return (
        f"&user.DefaultInfo{{Name:{quoted(wanted.name)}, UID:{quoted(wanted.uid)}, "
        f"Groups:{groups}, Extra:map[string][]string{extra}}}"
    )


def impersonated_user(request: Request) -> User:
    """Raises BadRequest."""
    named = _named_user(request)
    name, groups = named.name, named.groups
    if not name:
        raise BadRequest(f"requested [{_wanted(request)}] without impersonating a user")
    account = account_of(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if name != ANONYMOUS.name and not {AUTHENTICATED, UNAUTHENTICATED} & set(groups):
        groups = (*groups, AUTHENTICATED)
    if name == ANONYMOUS.name and not groups:
        groups = (UNAUTHENTICATED,)
    return User(name, groups, named.uid, named.extra)


def _wanted(request: Request) -> str:
    """As Go prints the references."""
    version = "authentication.k8s.io/v1"
    parts = [f"{{Group  {group}    }}" for group in request.values(_GROUP)]
    for key in request.headers:
        if key.startswith(_EXTRA):
            field = unquote(key[len(_EXTRA) :])
            parts += [f"{{UserExtra  {item}  {version}  {field}}}" for item in request.values(key)]
    parts += [f"{{UID  {uid}  {version}  }}" for uid in request.values(_UID)[:1]]
    return " ".join(parts)


def required_access(user: User, request: Request) -> list[Attributes]:
    """Everything that `user` must be allowed before it may speak as the one in the headers."""
    headers = request.headers
    asked: list[Attributes] = []
    name = headers.get(_USER, "")
    account = account_of(name)
    if account:
        asked.append(
            Attributes(
                user, "impersonate", "", "serviceaccounts", namespace=account[0], name=account[1]
            )
        )
    else:
        asked.append(Attributes(user, "impersonate", "", "users", name=name))
    for group in request.values(_GROUP):
        asked.append(Attributes(user, "impersonate", "", "groups", name=group))
    group = "authentication.k8s.io"
    if headers.get(_UID):
        asked.append(Attributes(user, "impersonate", group, "uids", name=headers[_UID]))
    for key in headers:
        if key.startswith(_EXTRA):
            kind = unquote(key[len(_EXTRA) :])
            asked += [
                Attributes(user, "impersonate", group, "userextras", kind, name=value)
                for value in request.values(key)
            ]
    return asked

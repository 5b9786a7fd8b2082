"""Impersonation: the Impersonate-* headers.

Job: the Impersonate-* headers → the user they name, and what must be allowed for it. Pure.
Invariant: whoever impersonates has nothing left of their own groups.
Invariant: one header line names one group: a comma is part of its name, as upstream.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from sampan.api.errors import BadRequest
from sampan.api.rules import names
from sampan.apiserver.authn.tokens import PREFIX
from sampan.apiserver.authn.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
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


def impersonated_user(request: Request) -> User:
    """Raises BadRequest."""
    headers = request.headers
    name = headers.get(_USER, "")
    groups = tuple(request.values(_GROUP))
    extra = {
        unquote(key[len(_EXTRA) :]): tuple(request.values(key))
        for key in headers
        if key.startswith(_EXTRA)
    }
    if not name:
        raise BadRequest(f"requested [{_wanted(request)}] without impersonating a user")
    if len(request.values(_USER)) > 1 or len(request.values(_UID)) > 1:
        raise BadRequest("requested impersonation of more than one user")
    account = _service_account(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if name != ANONYMOUS.name and not {AUTHENTICATED, UNAUTHENTICATED} & set(groups):
        groups = (*groups, AUTHENTICATED)
    if name == ANONYMOUS.name and not groups:
        groups = (UNAUTHENTICATED,)
    return User(name, groups, headers.get(_UID, ""), extra)


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
    account = _service_account(name)
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


def _service_account(name: str) -> tuple[str, str] | None:
    if not name.startswith(PREFIX):
        return None
    parts = name[len(PREFIX) :].split(":")
    if len(parts) != 2 or names.dns_label(parts[0]) or names.dns_subdomain(parts[1]):
        return None
    return parts[0], parts[1]

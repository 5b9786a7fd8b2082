"""Impersonation: a user who may do so speaks as somebody else.

Job: the Impersonate-* headers → the user they name, and what must be allowed for it. Pure.
Invariant: whoever impersonates has nothing left of their own groups.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from sampan.api.errors import BadRequest
from sampan.apiserver.authn.tokens import PREFIX
from sampan.apiserver.authn.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from sampan.apiserver.authz.chain import Attributes

_USER, _GROUP, _UID = "impersonate-user", "impersonate-group", "impersonate-uid"
_EXTRA = "impersonate-extra-"


def is_asked(headers: Mapping[str, str]) -> bool:
    # One look at all names at once: this is asked of every request.
    return "\nimpersonate-" in "\n" + "\n".join(headers)


def impersonated(headers: Mapping[str, str]) -> User:
    """Raises BadRequest."""
    name = headers.get(_USER, "")
    groups = tuple(one.strip() for one in headers.get(_GROUP, "").split(",") if one.strip())
    extra = {
        unquote(key[len(_EXTRA) :]): tuple(one.strip() for one in value.split(","))
        for key, value in headers.items()
        if key.startswith(_EXTRA)
    }
    if not name:
        raise BadRequest("requested impersonation without impersonating a user")
    account = _service_account(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if name != ANONYMOUS.name and not {AUTHENTICATED, UNAUTHENTICATED} & set(groups):
        groups = (*groups, AUTHENTICATED)
    if name == ANONYMOUS.name and not groups:
        groups = (UNAUTHENTICATED,)
    return User(name, groups, headers.get(_UID, ""), extra)


def required(user: User, headers: Mapping[str, str]) -> list[Attributes]:
    """Everything that `user` must be allowed before it may speak as the one in the headers."""
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
    for group in headers.get(_GROUP, "").split(","):
        if group.strip():
            asked.append(Attributes(user, "impersonate", "", "groups", name=group.strip()))
    group = "authentication.k8s.io"
    if headers.get(_UID):
        asked.append(Attributes(user, "impersonate", group, "uids", name=headers[_UID]))
    for key, value in headers.items():
        if key.startswith(_EXTRA):
            kind = unquote(key[len(_EXTRA) :])
            asked += [
                Attributes(user, "impersonate", group, "userextras", kind, name=one.strip())
                for one in value.split(",")
            ]
    return asked


def _service_account(name: str) -> tuple[str, str] | None:
    if not name.startswith(PREFIX):
        return None
    namespace, found, account = name[len(PREFIX) :].partition(":")
    return (namespace, account) if found and namespace and account else None

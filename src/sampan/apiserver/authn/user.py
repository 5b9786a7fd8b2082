"""user.Info: name, groups, uid and extra of a caller.

Job: the user that authentication found, and that authorization and admission look at. Pure.
"""

from collections.abc import Mapping
from dataclasses import field

from sampan.api.rules import names
from sampan.core.fast_dataclass import dataclass

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
MONITORING = "system:monitoring"
NODES_GROUP = "system:nodes"
NODE_PREFIX = "system:node:"
ACCOUNTS_GROUP = "system:serviceaccounts"
ACCOUNT_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def component(name: str) -> User:
    """A part of the system, by its user name: with the groups that its kind of name brings."""
    if name.startswith(NODE_PREFIX):
        return User(name, (NODES_GROUP,))
    if name.startswith(ACCOUNT_PREFIX):
        namespace = name[len(ACCOUNT_PREFIX) :].partition(":")[0]
        return User(name, (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{namespace}"))
    return User(name)


def with_authenticated_group(user: User) -> User:
    """The same user, a member of system:authenticated."""
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)


def account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account whose user name this is."""
    if not name.startswith(ACCOUNT_PREFIX):
        return None
    parts = name[len(ACCOUNT_PREFIX) :].split(":")
    if len(parts) != 2 or names.dns_label(parts[0]) or names.dns_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def node_of(name: str) -> str:
    """The node whose user name this is; empty: none."""
    node = name[len(NODE_PREFIX) :] if name.startswith(NODE_PREFIX) else ""
    return "" if not node or names.dns_subdomain(node) else node

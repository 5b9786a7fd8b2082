"""Who is asking.

Job: the user that authentication found, and that authorization and admission look at. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES_GROUP = "system:nodes"
NODE_PREFIX = "system:node:"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def authenticated(user: User) -> User:
    """The same user, a member of system:authenticated."""
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)

"""Bootstrap tokens: secrets of kube-system with which a new node makes itself known.

Job: a token like abcdef.0123456789abcdef → the user that its secret allows. Pure.
"""

import hmac

from sampan.api.objects import meta_of
from sampan.api.rules.tokens.bootstrap_tokens import (
    NAMESPACE,
    PREFIX,
    TYPE,
    seconds_left,
    token_data,
)
from sampan.apiserver.authn.jwt import BadToken
from sampan.apiserver.authn.tokens import Lookup
from sampan.apiserver.authn.user import User
from sampan.core.patterns import lazy_pattern

GROUP = "system:bootstrappers"
_TOKEN = lazy_pattern(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP = lazy_pattern(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def bootstrap_user(token: str, lookup: Lookup, now: float) -> User | None:
    """None: no such token, or not for this. Raises BadToken."""
    matched = _TOKEN.fullmatch(token)
    if matched is None:
        return None
    token_id, given = matched.groups()
    secret = lookup("secrets", NAMESPACE, f"{PREFIX}{token_id}")
    if secret is None:
        return None
    if secret.get("type") != TYPE or meta_of(secret).get("deletionTimestamp"):
        raise BadToken("the bootstrap token's secret is not of its type, or being deleted")
    data = token_data(secret)
    if not hmac.compare_digest(data.get("token-secret", "").encode(), given.encode()):
        raise BadToken("the bootstrap token has another secret")
    if data.get("token-id") != token_id or seconds_left(data, now) == 0:
        raise BadToken("the bootstrap token has expired")
    if data.get("usage-bootstrap-authentication") != "true":
        raise BadToken("the bootstrap token is not for authentication")
    return User(f"system:bootstrap:{token_id}", _groups(data.get("auth-extra-groups", "")))


def _groups(text: str) -> tuple[str, ...]:
    extra = [part.strip() for part in text.split(",") if part.strip()]
    for item in extra:
        if not _EXTRA_GROUP.fullmatch(item):
            raise BadToken(f"bootstrap group {item!r} is invalid")
    return (GROUP, *sorted(set(extra)))

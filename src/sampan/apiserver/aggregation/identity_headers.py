"""X-Remote-User, -Group and -Extra: the caller, as a front proxy names it. Pure.

Job: a user → X-Remote-* headers; a request's headers → those that may travel on.
Invariant: nothing that a caller sent says who the caller is: such headers are ours alone.
"""

from collections.abc import Mapping

from sampan.apiserver.authn.user import User
from sampan.core.http.messages import Headers
from sampan.core.patterns import lazy_pattern

_OURS = frozenset({"authorization", "x-remote-user", "x-remote-group", "x-remote-uid"})
_PREFIXES = ("impersonate-", "x-remote-extra-")
_TOKEN = lazy_pattern(r"[^!#$&'*+\-.^_`|~0-9A-Za-z]")  # and "%": what a header's name cannot hold


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The caller's, without what was meant for this server alone."""
    return {
        name: text
        for name, text in headers.items()
        if name not in _OURS and not name.startswith(_PREFIXES)
    }


def identity_headers(user: User) -> Headers:
    """One line for each group and each value."""
    lines = [("x-remote-user", user.name)]
    if user.uid:
        lines.append(("x-remote-uid", user.uid))
    lines += [("x-remote-group", group) for group in user.groups]
    for key, values in user.extra.items():
        lines += [(f"x-remote-extra-{_escape(key)}", value) for value in values]
    return lines


def _escape(key: str) -> str:
    return _TOKEN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), key)

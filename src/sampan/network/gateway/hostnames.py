"""Hostnames of listeners and routes: which hosts each is for, and what two have in common.

Job: two hostnames → the hosts that both are for; a host → the hostnames that are for it. Pure.
Invariant: a wildcard stands for one label or more, never for none.
"""

from collections.abc import Iterator

EVERY = ""  # no hostname: every host
WILDCARD = "*."
LONGEST = 253  # of a name; what is longer is no host that anybody wrote down


def in_common(one: str, other: str) -> str | None:
    """The narrower of the two, or None where no host is of both."""
    if one == other or not other:
        return one
    if not one or _covers(one, other):
        return other
    return one if _covers(other, one) else None


def names_of(host: str) -> Iterator[str]:
    """The hostnames that are for a host: its own, then wildcards from the longest on, then none."""
    if host:
        yield host
    rest = host if len(host) <= LONGEST else ""
    while dot := rest.find(".") + 1:
        rest = rest[dot:]
        yield WILDCARD + rest
    yield EVERY


def _covers(wide: str, narrow: str) -> bool:
    """Of two that differ."""
    return wide.startswith(WILDCARD) and narrow.endswith(wide[1:])

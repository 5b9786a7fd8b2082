"""The query of a URL, read as Go's net/url reads it. Pure.

Job: query → every value of every key, in order.
Invariant: a pair that is malformed (a semicolon in it, a broken escape) is left out, and the others
    count.
"""

from urllib.parse import unquote_plus

from sampan.core.patterns import lazy_pattern

_BROKEN = lazy_pattern(r"%(?![0-9A-Fa-f]{2})")


def query_values(query: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair or ("%" in pair and _BROKEN.search(pair)):
            continue
        key, _, value = pair.partition("=")
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


def first_value(query: str, key: str) -> str:
    """Of several the first counts; empty where there is none."""
    return query_values(query).get(key, [""])[0] if key in query else ""

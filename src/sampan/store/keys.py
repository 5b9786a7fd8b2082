"""Prefixes as ranges of keys. Pure.

Job: the first key that lies behind every key with a prefix.
Invariant: `prefix <= key < prefix_end(prefix)` exactly where the key starts with the prefix.
Keys are compared by code point, which is the order of their UTF-8 bytes too (SQLite, etcd).
"""

_LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)  # not characters: no key holds one


def prefix_end(prefix: str) -> str | None:
    """None where no key lies behind the prefix (the empty prefix, or only last characters)."""
    kept = prefix.rstrip(chr(_LAST))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return kept[:-1] + chr(following)

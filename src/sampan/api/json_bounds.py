"""How many values a text of JSON may have before it is read.

Job: bytes → whether reading them would make too many lists, objects, fields and values. Making
    those holds the interpreter for everybody, in whichever thread it is done.
"""

from sampan.core.patterns import lazy_pattern

# Some 20 ms each.
MOST_BRACKETS, MOST_FIELDS = 100_000, 200_000
MOST_VALUES, LONG_BYTES = 800_000, 3 << 20  # of what is longer than the body of a request may be
TOO_MANY = (
    f"more than {MOST_BRACKETS} lists and objects, {MOST_FIELDS} fields or {MOST_VALUES} values"
)
_TEXTS = lazy_pattern(rb'"[^"\\]*(?:\\.[^"\\]*)*"')


def has_too_many_values(body: bytes) -> bool:
    if not _more(body):
        return False
    if body.count(b'"') - body.count(b'\\"') > 2 * MOST_FIELDS:
        return True
    return _more(_TEXTS.sub(b"", body))  # a text may have what it likes


def _more(body: bytes) -> bool:
    return (
        body.count(b"[") + body.count(b"{") > MOST_BRACKETS
        or body.count(b":") > MOST_FIELDS
        or (len(body) > LONG_BYTES and body.count(b",") > MOST_VALUES)
    )

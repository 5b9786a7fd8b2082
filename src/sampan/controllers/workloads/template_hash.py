"""The hashes of pod templates: in pod-template-hash, and in the names of ControllerRevisions.

Job: a short, stable, speakable word for a template or for a revision's data. Pure.
Why a template's word is not upstream's: upstream hashes a dump of Go's structures with every field,
    set or not, by the names and types of its sources, and of quantities with what they remember of
    their parsing. Form and alphabet are the same; the words differ, and nothing may rely on them.
Invariant: the word of a StatefulSet's revision is upstream's: it hashes the bytes of its data.
Invariant: a template as large as an object may be is hashed within some 30 ms, and once per plan.
"""

import orjson

from sampan.api.objects import Obj
from sampan.client.by_identity import OF_ANY_SIZE, by_identity_and

_ESCAPED = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}
_OFFSET, _PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
_MANY = 16_384  # bytes, from which on they are hashed by columns
_BLOCK = 65_536  # bytes in one column
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no bad words


@by_identity_and(8, OF_ANY_SIZE)
def template_hash(template: Obj, collision_count: int | None) -> str:
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little", signed=True)
    return speakable(str(fnv32a(data)))


def data_hash(data: Obj, collision_count: int | None) -> str:
    """As HashControllerRevision."""
    text = go_json(data)
    if collision_count is not None:
        text += str(collision_count).encode()
    return speakable(str(fnv32(text)))


def go_json(value: object) -> bytes:
    """As Go's json.Marshal writes a map: sorted, and safe inside of HTML."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def fnv32(data: bytes) -> int:
    """Multiplies before each byte, where fnv32a does after it: one step ahead, it is the same."""
    if not data:
        return _OFFSET
    return _fnv32a(data[:-1], (_OFFSET * _PRIME) & _MASK) ^ data[-1]


def fnv32a(data: bytes) -> int:
    return _fnv32a(data, _OFFSET)


def _fnv32a(data: bytes, value: int) -> int:
    if len(data) > _MANY:
        for first in range(0, len(data), _BLOCK):
            value = _by_columns(data[first : first + _BLOCK], value)
        return value
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def _by_columns(data: bytes, value: int) -> int:
    """A byte changes the lowest eight bits of the value before it is multiplied. What these are
    depends on nothing above them, each on those below it and on all bytes before: so they come bit
    by bit, for all bytes at once. The rest is a sum of what each byte has added."""
    import numpy as np

    given = np.frombuffer(data, np.uint8)
    low = np.zeros(len(given), np.uint8)  # of the value, with the byte
    for place in range(8):
        bit = np.uint8(1 << place)
        changes = ((low * np.uint8(_PRIME & 0xFF)) ^ given) & bit
        before = np.empty_like(changes)
        before[0], before[1:] = value & int(bit), changes[:-1]
        low |= np.bitwise_xor.accumulate(before) ^ (given & bit)
    added = low.astype(np.uint32) - (low ^ given)
    powers = np.multiply.accumulate(np.full(len(given), _PRIME, np.uint32))[::-1]
    total = int((added * powers).sum(dtype=np.uint32))
    return (value * pow(_PRIME, len(given), _MASK + 1) + total) & _MASK


def speakable(text: str) -> str:
    """As apimachinery's SafeEncodeString."""
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)

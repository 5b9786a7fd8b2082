"""The hashes of pod templates: in pod-template-hash, and in the names of ControllerRevisions.

Job: a short, stable, speakable word for a template or for a revision's data. Pure.
Why a template's word is not upstream's: upstream hashes a dump of Go's structures with every field,
    set or not, by the names and types of its sources, and of quantities with what they remember of
    their parsing. Form and alphabet are the same; the words differ, and nothing may rely on them.
Invariant: the word of a StatefulSet's revision is upstream's: it hashes the bytes of its data.
"""

import orjson

from sampan.api.objects import Obj

_ESCAPED = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no bad words


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
    value = 0x811C9DC5
    for byte in data:
        value = ((value * 0x01000193) & 0xFFFFFFFF) ^ byte
    return value


def fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def speakable(text: str) -> str:
    """As apimachinery's SafeEncodeString."""
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)

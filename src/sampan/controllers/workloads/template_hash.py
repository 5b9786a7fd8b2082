"""The hash of a pod template, as it appears in names and in the label pod-template-hash.

Job: a short, stable, speakable word for a template. Pure.
Why it is not upstream's number: upstream hashes the dump of a Go structure. Form and alphabet are
    the same; the words differ, and nothing may rely on them.
"""

import orjson

from sampan.api.objects import Obj

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no bad words


def template_hash(template: Obj, collision_count: int | None) -> str:
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little")
    return speakable(str(fnv32a(data)))


def fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def speakable(text: str) -> str:
    """As apimachinery's SafeEncodeString."""
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.workloads.template_hash import (
    ALPHABET,
    data_hash,
    fnv32,
    fnv32a,
    go_json,
    speakable,
    template_hash,
)

TEMPLATES = st.dictionaries(st.text("ab", max_size=3), st.integers(0, 99))


def test_the_sum_is_fnv_1a():
    assert fnv32a(b"") == 0x811C9DC5
    assert fnv32a(b"foobar") == 0xBF9CF968


@given(TEMPLATES)
def test_it_is_stable_and_speakable(template):
    word = template_hash(template, None)
    assert word == template_hash(dict(reversed(list(template.items()))), None)
    assert 1 <= len(word) <= 10
    assert set(word) <= set(ALPHABET)


def test_a_collision_gives_another_word():
    words = {template_hash({"a": 1}, count) for count in (None, 0, 1, 2)}
    assert len(words) == 4
    assert speakable("0123456789") == "".join(ALPHABET[(48 + n) % 27] for n in range(10))


def test_the_hash_of_data_is_fnv_1():
    """Known values of the algorithm."""
    assert fnv32(b"") == 0x811C9DC5
    assert fnv32(b"a") == 0x050C5D7E
    assert fnv32(b"foobar") == 0x31F0B262


def test_json_is_written_as_go_writes_it():
    value = {"b": "<&>", "a": ["é\n", 1, None, True], "$patch": "replace"}
    expected = '{"$patch":"replace","a":["é\\n",1,null,true],"b":"\\u003c\\u0026\\u003e"}'
    assert go_json(value) == expected.encode()


def test_collisions_are_hashed_as_decimal_digits():
    data = {"spec": {}}
    assert data_hash(data, 0) == speakable(str(fnv32(b'{"spec":{}}0')))
    assert data_hash(data, None) == speakable(str(fnv32(b'{"spec":{}}')))


@pytest.mark.parametrize("length", [16_384, 16_385, 65_536, 65_537, 140_001])
def test_many_bytes_have_the_same_sums_as_byte_after_byte(length):
    data = random.Random(length).randbytes(length)
    first = after = 0x811C9DC5
    for byte in data:
        first = (first * 0x01000193 & 0xFFFFFFFF) ^ byte
        after = (after ^ byte) * 0x01000193 & 0xFFFFFFFF
    assert (fnv32(data), fnv32a(data)) == (first, after)

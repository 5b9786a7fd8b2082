import orjson
from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.storage.sharing import SEEN, VALUE_BYTES, Remembered, SharedValues

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=20), st.integers(0, 3))
def test_what_is_shared_is_what_was_given(values, levels):
    sharing = SharedValues(limit_bytes=40)
    for value in (*values, *values):
        text = orjson.dumps(value)
        assert orjson.dumps(sharing.shared(value, levels)) == text
        assert orjson.dumps(value) == text


def test_equal_values_are_one_object_from_the_second_on():
    sharing = SharedValues()
    sharing.shared({"a": [1, {"b": "c"}]})
    second = sharing.shared({"a": [1, {"b": "c"}]})
    assert sharing.shared({"a": [1, {"b": "c"}]}) is second
    assert sharing.shared({"a": [1.0, {"b": "c"}]}) is not second


def test_parts_are_shared_where_the_whole_is_not():
    sharing = SharedValues()
    _, one, two = (sharing.shared([{"name": name, "x": {"y": "z"}}], 2) for name in "abc")
    assert one[0]["x"] is two[0]["x"]
    assert sharing.shared(one, 2) == one
    assert sharing.shared(two, 2) is two


def test_what_is_asked_for_again_outlives_what_is_not():
    sharing = SharedValues(limit_bytes=20)
    for text in ("wanted", "unwanted"):
        sharing.shared([text])
    wanted, unwanted = sharing.shared(["wanted"]), sharing.shared(["unwanted"])
    for number in range(10):
        for _ in range(2):
            sharing.shared([f"another {number}"])
        assert sharing.shared(["wanted"]) is wanted
    assert sharing.shared(["unwanted"]) is not unwanted


def test_what_is_remembered_is_bounded():
    known = Remembered(limit_bytes=10_000)
    for number in range(SEEN + 10):
        for _ in range(2 if number < 2000 else 1):
            known.keep(b"%d" % number + b"x" * 100, number)
    assert sum(map(len, (*known._young, *known._old))) <= 2 * (10_000 + VALUE_BYTES)
    assert len(known._young) > 10
    assert len(known._seen) <= SEEN
    for _ in range(3):
        known.keep(b"x" * (VALUE_BYTES + 1), 1)
    assert known.get(b"x" * (VALUE_BYTES + 1)) is None

import orjson
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.sharing import VALUE_BYTES, SharedValues

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=20))
def test_what_is_shared_is_what_was_given(values):
    sharing = SharedValues(limit_bytes=40)
    for value in values:
        assert orjson.dumps(sharing.shared(value)) == orjson.dumps(value)


def test_equal_values_are_one_object():
    sharing = SharedValues()
    first = sharing.shared({"a": [1, {"b": "c"}]})
    assert sharing.shared({"a": [1, {"b": "c"}]}) is first
    assert sharing.shared({"a": [1.0, {"b": "c"}]}) is not first


def test_what_is_asked_for_again_outlives_what_is_not():
    sharing = SharedValues(limit_bytes=20)
    wanted, unwanted = sharing.shared(["wanted"]), sharing.shared(["unwanted"])
    for number in range(10):
        sharing.shared([f"another {number}"])
        assert sharing.shared(["wanted"]) is wanted
    assert sharing.shared(["unwanted"]) is not unwanted


def test_what_is_remembered_is_bounded():
    sharing = SharedValues(limit_bytes=10_000)
    for number in range(2000):
        sharing.shared({"number": number, "text": "x" * 100})
    kept = [*sharing._known._young, *sharing._known._old]
    assert sum(map(len, kept)) <= 2 * (10_000 + VALUE_BYTES)
    large = ["x" * VALUE_BYTES]
    assert sharing.shared(large) is large
    assert sharing.shared(list(large)) is not large

import orjson
from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.storage.packing import PATTERNS, TEXT_BYTES, Patterns

SORTS = st.sampled_from([b"Scheduled", b"Pulled", b""])


@given(st.lists(st.tuples(SORTS, st.binary(max_size=3000)), max_size=20))
def test_what_was_packed_comes_back_as_it_was(texts):
    patterns = Patterns()
    packed = [patterns.pack(sort, text) for sort, text in texts]
    assert [each.text() for each in packed] == [text for _, text in texts]


def event(number):
    meta = {
        "name": f"pod-{number}.1878{number:012x}",
        "namespace": "default",
        "uid": f"{number:32x}",
    }
    about = {"kind": "Pod", "name": f"pod-{number}", "namespace": "default", "apiVersion": "v1"}
    said = {"message": f"Successfully assigned default/pod-{number} to node-{number % 7}"}
    return orjson.dumps({"metadata": meta, "involvedObject": about, "reason": "Scheduled", **said})


def test_events_of_one_reason_take_a_quarter_of_their_text():
    patterns = Patterns()
    texts = [event(number) for number in range(100)]
    packed = [patterns.pack(b"Scheduled", text) for text in texts]
    assert [each.text() for each in packed] == texts
    assert sum(len(each.data) for each in packed) < sum(map(len, texts)) / 4


def test_what_is_long_or_unlike_anything_stays_as_it_is():
    patterns = Patterns()
    long, short = b"x" * (TEXT_BYTES + 1), bytes(range(20))
    assert patterns.pack(b"a", long).data is long
    patterns.pack(b"b", b"something else")
    assert patterns.pack(b"b", short).data is short


def test_patterns_are_bounded_and_outlive_their_being_forgotten():
    patterns = Patterns()
    packed = {
        number: patterns.pack(b"%d" % number, event(number)) for number in range(2 * PATTERNS)
    }
    assert len(patterns) <= PATTERNS
    assert all(each.text() == event(number) for number, each in packed.items())

from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.store.keys import prefix_end

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
EDGES = st.text(st.sampled_from("a\ud7ff\ue000\U0010ffff"), max_size=4)


@settings(deadline=None)
@given(TEXT | EDGES, TEXT | EDGES)
def test_the_range_of_a_prefix_holds_exactly_the_keys_that_start_with_it(prefix, key):
    end = prefix_end(prefix)
    assert (prefix <= key and (end is None or key < end)) == key.startswith(prefix)


@settings(deadline=None)
@given(TEXT | EDGES)
def test_the_end_of_a_prefix_is_text_that_can_be_stored(prefix):
    (prefix_end(prefix) or "").encode()

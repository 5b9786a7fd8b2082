import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.digits import MOST_DIGITS, all_digits, is_digits, number_up_to, whole_number

# What other scripts have for digits, too: "²", "٣", "①".
ODD = st.text(st.characters(categories=["Nd", "No", "Nl", "Ll", "Pd"]), max_size=50)


@pytest.mark.parametrize("text", ["0", "-7", "+8", "12345678901234567890", "0" * 90 + "7"])
def test_a_number_is_what_int_says(text):
    assert whole_number(text) == int(text)


def test_a_number_without_end_is_as_large_as_it_gets():
    assert whole_number("9" * 1_000_000) == 10**40
    assert whole_number("-" + "9" * 1_000_000) == -(10**40)


def test_what_is_no_number_is_refused():
    for text in ("", "x", "9" * 100 + "x", "٣" * 50):
        with pytest.raises(ValueError, match=r"int|whole"):
            whole_number(text)


@given(ODD | st.from_regex(r"[0-9]{1,60}", fullmatch=True))
def test_digits_are_what_int_reads_and_nothing_else_is(text):
    plain = text != "" and set(text) <= set("0123456789")
    assert all_digits(text) == plain
    assert is_digits(text) == (plain and len(text) <= MOST_DIGITS)
    assert number_up_to(10**9, text) == (int(text) if plain and int(text) <= 10**9 else None)

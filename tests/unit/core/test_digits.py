import pytest

from sampan.core.digits import whole_number


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

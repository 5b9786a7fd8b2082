"""Quantities: spelling, arithmetic, refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import quantity
from sampan.api.quantity import Format, Quantity, QuantityError, canonical, parse

SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "E-2"]
)
TEXTS = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**12),
    st.one_of(st.just(""), st.integers(0, 10**6).map(lambda n: f".{n}")),
    SUFFIXES,
)
AMOUNTS = st.builds(Quantity, st.integers(-(10**24), 10**24), st.sampled_from(Format))


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0", "0"), ("1", "1"), ("1000m", "1"), ("0.5", "500m"), ("100m", "100m"),
        ("1024Mi", "1Gi"), ("1500Mi", "1500Mi"), ("1.5Gi", "1536Mi"), ("128Mi", "128Mi"),
        ("1e3", "1e3"), ("1000e3", "1e6"), ("5E", "5E"), ("1000E", "1e21"), ("0Mi", "0"),
        ("0.1n", "1n"), ("0.5Ki", "512"), ("1.0", "1"), ("1000k", "1M"), ("-2Gi", "-2Gi"),
        ("1.500", "1.500"), ("0.500", "500m"), (".5", "500m"), (2, "2"), (0.1, "100m"),
        (" 1 ", "1"),
    ],
)  # fmt: skip
def test_a_quantity_is_stored_in_its_one_spelling(written, stored):
    """[A4]"""
    assert canonical(written) == stored


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", quantity.WRONG_FORM), ("abc", quantity.WRONG_FORM), ("1 Gi", quantity.WRONG_FORM),
        ("1.2.3", quantity.WRONG_FORM), ("1Gi1Gi", quantity.WRONG_FORM),
        ("1K", quantity.WRONG_SUFFIX), ("1i", quantity.WRONG_SUFFIX), ("1KiB", quantity.WRONG_FORM),
        ("1e", quantity.WRONG_SUFFIX),
        ("1e999999999", quantity.WRONG_NUMBER),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_in_upstreams_words(written, why):
    with pytest.raises(QuantityError) as caught:
        parse(written)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("written", "value", "milli"),
    [("1500m", 2, 1500), ("-1500m", -2, -1500), ("1n", 1, 1), ("1Ki", 1024, 1024000), ("0", 0, 0)],
)
def test_whole_units_and_thousandths_are_rounded_away_from_zero(written, value, milli):
    assert (parse(written).value(), parse(written).milli()) == (value, milli)


@given(TEXTS)
def test_what_was_printed_parses_to_the_same_amount_and_prints_the_same(text):
    once = parse(text)
    again = parse(str(once))
    assert again == once
    assert str(again) == str(once)


@given(AMOUNTS)
def test_a_computed_amount_survives_print_and_parse(amount):
    assert parse(str(amount)) == amount


@given(AMOUNTS, AMOUNTS)
def test_sums_undo_differences_and_order_agrees(one, two):
    assert one + two - two == one
    assert (one < two) == (not two <= one)
    assert one - two == -(two - one)


def test_a_sum_takes_the_format_of_its_first_amount_that_is_not_zero():
    assert str(parse("1Gi") + parse("1Gi")) == "2Gi"
    assert str(quantity.ZERO + parse("1Gi")) == "1Gi"
    assert str(quantity.from_milli(1500) + quantity.from_value(1)) == "2500m"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1n", "1m"), ("100u", "1m"), ("1500u", "2m"), ("-1n", "-1m"), ("1m", "1m"), ("5Gi", "5Gi")],
)
def test_amounts_of_resources_are_rounded_up_to_thousandths(text, wanted):
    assert quantity.to_milli(text) == wanted

"""api/go_text.py: numbers and JSON as Go writes them."""

import pytest

from sampan.api.go_text import (
    go_float,
    go_json,
    go_label_selector,
    go_syntax,
    go_type_name,
    go_value,
)


@pytest.mark.parametrize(
    ("value", "printed", "encoded"),
    [
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (1.0, "1", "1"),
        (-2.5, "-2.5", "-2.5"),
        (123456.0, "123456", "123456"),
        (1000000.0, "1e+06", "1000000"),
        (1234567.5, "1.2345675e+06", "1234567.5"),
        (1e20, "1e+20", "100000000000000000000"),
        (1e21, "1e+21", "1e+21"),
        (1.5e300, "1.5e+300", "1.5e+300"),
        (0.0001, "0.0001", "0.0001"),
        (0.00001, "1e-05", "0.00001"),
        (0.000001, "1e-06", "0.000001"),
        (0.00000012, "1.2e-07", "1.2e-7"),
        (0.1, "0.1", "0.1"),
        (5e-324, "5e-324", "5e-324"),
    ],
)
def test_floats(value, printed, encoded):
    assert go_float(value) == printed
    assert go_json(value) == encoded


def test_json_has_its_keys_in_order_and_no_letter_that_html_would_read():
    value = {"b": [1.0, None, True, "<a&b>"], "a": {"é": "\u2028\n"}}
    assert go_json(value) == (
        '{"a":{"é":"\\u2028\\n"},"b":[1,null,true,"\\u003ca\\u0026b\\u003e"]}'
    )


def test_values_are_printed_as_by_percent_v():
    value = {"b": [1, "x", None, True], "a": {}}
    assert go_value(value) == "map[a:map[] b:[1 x <nil> true]]"


def test_values_print_in_gos_own_syntax():
    assert go_syntax(7) == "7"
    assert go_syntax("x") == '"x"'
    assert go_syntax([]) == "[]interface {}{}"
    assert go_syntax([None, {"a": "b"}]) == (
        '[]interface {}{interface {}(nil), map[string]interface {}{"a":"b"}}'
    )


def test_types_have_gos_names():
    names = [go_type_name(value) for value in ("x", 1, 1.5, True, [], {}, None)]
    assert names == [
        "string", "int64", "float64", "bool", "[]interface {}", "map[string]interface {}", "<nil>",
    ]  # fmt: skip


def test_selectors_are_told_as_go_prints_them():
    term = {"key": "k", "operator": "In", "values": ["a", "b"]}
    assert go_label_selector({"matchExpressions": [term]}) == (
        "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:"
        "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
    )

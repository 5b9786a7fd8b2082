"""Duplicate fields, and YAML as the original reads it."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.strict_json import parse
from sampan.api.strict_yaml import parse_yaml

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON)
def test_json_without_repeats_reads_as_plain_json(value):
    parsed = parse(json.dumps(value).encode())
    assert parsed.value == value
    assert parsed.duplicates == []


def test_repeated_fields_are_named_by_path_and_the_last_one_counts():
    """[A4] duplicate fields by fieldValidation."""
    parsed = parse(
        b'{"metadata":{"name":"a","name":"b","name":"c"},"spec":{"containers":[{},{"x":1,"x":2}]}}'
    )
    assert parsed.duplicates == [
        'duplicate field "metadata.name"',
        'duplicate field "spec.containers[1].x"',
    ]
    assert parsed.value == {"metadata": {"name": "c"}, "spec": {"containers": [{}, {"x": 2}]}}
    assert type(parsed.value["metadata"]) is dict


@pytest.mark.parametrize("body", [b"{", b"NaN", b'{"a":Infinity}', b"\xff"])
def test_what_is_no_json_is_refused(body):
    with pytest.raises(ValueError):  # noqa: PT011  # any reason will do
        parse(body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-01-01", "2020-01-01"), ("1:30", "1:30"), ("1e3", 1000), ("2.0", 2), ("1.5", 1.5),
        ("010", 8), ("0x10", 16), ("y", True), ("off", False), ("'on'", "on"), ("~", None),
        ("1_000", 1000), ("v1.35", "v1.35"), ("1.2.3", "1.2.3"), ("-7", -7), ("", None),
    ],
)  # fmt: skip
def test_yaml_scalars_read_as_in_go(text, value):
    assert parse_yaml(f"a: {text}").value == {"a": value}
    assert type(parse_yaml(f"a: {text}").value["a"]) is type(value)


def test_yaml_keys_are_strings_and_merges_work():
    parsed = parse_yaml("1: a\ntrue: b\nbase: &base {x: 1}\nmore:\n  <<: *base\n  z: 2\n")
    assert parsed.value == {"1": "a", "true": "b", "base": {"x": 1}, "more": {"x": 1, "z": 2}}


def test_yaml_names_the_line_of_a_repeated_key():
    parsed = parse_yaml("a: 1\nb: 2\na: 3\n")
    assert parsed.value == {"a": 3, "b": 2}
    assert parsed.duplicates == ['yaml: unmarshal errors:\n  line 3: key "a" already set in map']


@pytest.mark.parametrize("text", ["a: [", "? [a]\n: b", "a: &a [*a]"])
def test_what_is_no_yaml_document_is_refused(text):
    with pytest.raises(ValueError, match="error converting YAML to JSON: yaml: "):
        parse_yaml(text)


def test_the_first_yaml_document_counts():
    """As Go's reader, which leaves the rest unread."""
    assert parse_yaml("a: 1\n---\nb: [").value == {"a": 1}
    assert parse_yaml("").value is None


def test_yaml_that_explodes_through_aliases_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ValueError, match="excessive aliasing"):
        parse_yaml("\n".join(lines))


def test_yaml_that_explodes_through_merge_keys_is_refused():
    """463 bytes once ended the process: each level brings the one before eight times over."""
    lines = ["a0: &a0 {k: v}"]
    lines += [
        f"a{n}: &a{n} {{k{n}: v, <<: [{', '.join([f'*a{n - 1}'] * 8)}]}}" for n in range(1, 12)
    ]
    merged = parse_yaml("\n".join(lines)).value["a11"]
    assert merged == {"k": "v", **{f"k{n}": "v" for n in range(1, 12)}}
    wide = ["w0: &w0 {" + ", ".join(f"k{n}: v" for n in range(400)) + "}"]
    wide += [f"w{n}: &w{n} {{<<: [{', '.join([f'*w{n - 1}'] * 8)}]}}" for n in range(1, 40)]
    with pytest.raises(ValueError, match="excessive aliasing"):
        parse_yaml("\n".join(wide))
    chain = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: *a{n - 1}}}" for n in range(1, 3000))]
    with pytest.raises(ValueError, match="excessive aliasing"):
        parse_yaml("\n".join([*chain, "<<: *a2999"]))


def test_a_merge_gives_way_to_what_is_written_and_earlier_ones_to_later_ones():
    assert parse_yaml("b: &b {x: 1, z: 2}\nc: {<<: *b, x: 3}").value["c"] == {"x": 3, "z": 2}
    assert parse_yaml("b: &b {x: 1}\nc: {x: 3, <<: *b}").duplicates == []
    assert parse_yaml("c: {<<: [{x: 5}, {x: 6, z: 1}]}").value == {"c": {"x": 5, "z": 1}}
    assert parse_yaml("&a {<<: *a, b: c}").value == {"b": "c"}
    with pytest.raises(ValueError, match="map merge requires map"):
        parse_yaml("c: {<<: [1]}")


@pytest.mark.parametrize(
    "deep",
    [
        "[" * 300,
        "- " * 100_000 + "a",
        "{a: " * 50_000,
        "\n".join(" " * n + "a:" for n in range(300)),
    ],
)
def test_a_deep_yaml_document_is_refused_before_it_is_built(deep):
    with pytest.raises(ValueError, match="exceeded max depth"):
        parse_yaml(deep)


def test_a_long_but_flat_yaml_document_is_read():
    lines = "\n".join(f"k{number}: [{{a: 1}}]" for number in range(400))
    assert len(parse_yaml(lines).value) == 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("-99999999999999999999", -1e20),
        ("1e300", 1e300),
        ("1e3", 1000),
    ],
)
def test_numbers_of_yaml_are_those_that_json_would_have(text, value):
    """What is stored is JSON, whose writers know 64 bits."""
    found = parse_yaml(f"a: {text}").value["a"]
    assert (found, type(found)) == (value, type(value))
    orjson.dumps(found)


@pytest.mark.parametrize("text", ["1e999", "9" * 400, "-" + "9" * 400, "0x" + "f" * 17])
def test_what_is_too_large_for_a_number_is_text(text):
    """As go-yaml: it tries integers and floats, and neither fits."""
    assert parse_yaml(f"a: {text}").value == {"a": text}


@pytest.mark.parametrize(
    ("text", "said"), [(".inf", "[+]Inf"), ("-.Inf", "-Inf"), (".nan", "NaN"), ("+.INF", "[+]Inf")]
)
def test_numbers_without_an_end_are_refused(text, said):
    with pytest.raises(ValueError, match=f"json: unsupported value: {said}"):
        parse_yaml(f"a: {text}")

"""Text to documents: JSON is what comes out, whatever YAML can say."""

import pytest

from sampan.cli.errors import CliError
from sampan.cli.objects.documents import documents


def read(text):
    return list(documents(text.encode(), "f.yaml"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1: a\ntrue: b\nx: c\n1.5: d", {"1": "a", "true": "b", "x": "c", "1.5": "d"}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("2024-01-01: a", {"2024-01-01": "a"}),
        ("a: !!binary aGk=", {"a": "hi"}),
        ("a: !!set {b, c}", {"a": {"b": None, "c": None}}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
    ],
)
def test_what_only_yaml_has_becomes_json(text, value):
    assert read("# yaml\n" + text) == [value]


@pytest.mark.parametrize(
    ("text", "value"),
    [("y", True), ("no", False), ("22:22", "22:22"), ("010", 8), ("1.0", 1), ("!foo x", "x")],
)
def test_values_are_those_that_go_reads(text, value):
    """Not base 60, as the library has it: ports would become large numbers."""
    assert read(f"a: {text}") == [{"a": value}]


def test_what_comes_before_a_mistake_is_delivered():
    found = documents(b"a: 1\n---\nb: [\n---\nc: 2\n", "f.yaml")
    assert next(found) == {"a": 1}
    with pytest.raises(CliError, match="yaml: line 1: did not find expected node content"):
        next(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1} x', "json: offset 10: invalid character 'x' looking for beginning of value"),
        ('{"a"', "unexpected EOF"),
        ("--- b\n", "invalid Yaml document separator: b"),
    ],
)
def test_mistakes_are_told_as_kubectl_tells_them(text, why):
    with pytest.raises(CliError) as caught:
        read(text)
    assert str(caught.value) == f"error parsing f.yaml: {why}"


def test_documents_in_braces_may_be_separated_as_in_yaml():
    assert read('{"a": 1}\n---\n{"b": 2}\n') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: .nan", "unsupported value"),
        ("a: .inf", "unsupported value: +Inf"),
        ("a: &x [*x]", "contains itself"),
        ("? [a, b]\n: c", "key"),
        ("a:\n\tb: c", "line 2"),
    ],
)
def test_what_json_cannot_say_is_refused_in_a_sentence(text, why):
    with pytest.raises(CliError, match=r"error parsing f\.yaml") as caught:
        read(text)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_short_text_cannot_stand_for_a_huge_one():
    lines = ["a0: &a0 [x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)
    ]
    with pytest.raises(CliError, match="excessive aliasing"):
        read("\n".join(lines))

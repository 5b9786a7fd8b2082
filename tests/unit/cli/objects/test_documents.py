"""Text to documents: JSON is what comes out, whatever YAML can say."""

import pytest

from sampan.cli.errors import CliError
from sampan.cli.objects.documents import documents


def read(text):
    return documents(text.encode(), "f.yaml")


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


def test_documents_in_braces_may_be_separated_as_in_yaml():
    assert read('{"a": 1}\n---\n{"b": 2}\n') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: .nan", "unsupported value"),
        ("a: .inf", "unsupported value: Inf"),
        ("a: &x [*x]", "nested too deeply"),
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

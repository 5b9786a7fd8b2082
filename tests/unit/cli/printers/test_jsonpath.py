"""cli/printers/jsonpath.py: templates as kubectl's."""

import pytest

from sampan.cli.printers.jsonpath import JsonPathError, Template, relax

DATA = {
    "kind": "List",
    "items": [
        {"metadata": {"name": "a", "labels": {"app": "x"}}, "spec": {"n": 5}},
        {"metadata": {"name": "b", "labels": {"app": "y"}}, "spec": {"n": 30, "ports": [80, 53]}},
    ],
    "data": {"file.conf": "v"},
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.kind}", "List"),
        ("{$.kind}/{@.kind}", "List/List"),
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[-1].metadata.name}", "b"),
        ("{.items[0,1].metadata.name}", "a b"),
        ("{.items[:1].metadata.name}", "a"),
        ("{.items[?(@.spec.n>10)].metadata.name}", "b"),
        ('{.items[?(@.metadata.labels.app=="x")].metadata.name}', "a"),
        ("{.items[?(@.spec.ports)].spec.ports[*]}", "80 53"),
        ('{range .items[*]}{.metadata.name}{"\\n"}{end}', "a\nb\n"),
        (r"{.data.file\.conf}", "v"),
        ("{.nope.x[0]}", ""),
        ("{.items[0].metadata.labels}", '{"app":"x"}'),
        ("plain{true}{1}", "plaintrue1"),
        ("{.items[*]['metadata.name','spec.n']}", "a b 5 30"),
    ],
)
def test_templates_give_what_kubectl_gives(template, text):
    """[C5]"""
    assert Template(template).render(DATA) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.items", "unclosed action"),
        ("{.items[}", "unterminated array"),
        ("{.a[x]}", "invalid array index x"),
    ],
)
def test_what_is_no_template_is_refused(template, message):
    with pytest.raises(JsonPathError, match=message):
        Template(template)


def test_a_missing_key_may_be_an_error():
    with pytest.raises(JsonPathError, match="nope is not found"):
        Template("{.nope}", allow_missing=False).render(DATA)


@pytest.mark.parametrize(
    "text", ["metadata.name", ".metadata.name", "{.metadata.name}", "{metadata.name}"]
)
def test_a_path_may_be_given_bare(text):
    assert relax(text) == "{.metadata.name}"


def test_empty_braces_are_all_of_it():
    assert Template("{}").render({"b": [1], "a": "x"}) == '{"a":"x","b":[1]}'

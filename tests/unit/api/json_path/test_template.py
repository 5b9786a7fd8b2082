"""api/json_path/template.py: what templates find and print, as client-go's do."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.json_path.parser import JsonPathError
from sampan.api.json_path.template import JsonPath, cell_text, parse_json_path, printed

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
DATA = RECORDED["data"]


def answer(template: str, **options) -> dict[str, str]:
    try:
        path = parse_json_path(template)
    except JsonPathError as error:
        return {"parse": str(error)}
    try:
        return {"out": "".join(map(printed, path.results(DATA, **options)))}
    except JsonPathError as error:
        return {"error": str(error)}


@pytest.mark.parametrize("row", RECORDED["rows"], ids=lambda row: row["template"])
def test_templates_give_what_kubectl_gave(row):
    lenient = {key: row[key] for key in ("out", "parse", "error") if key in row}
    assert answer(row["template"]) == lenient
    assert answer(row["template"], allow_missing=False) == row.get("strict", lenient)


def test_a_value_of_null_is_not_printed_as_a_list_of_them():
    assert printed([None]) == "null"
    assert cell_text(None) == "<no value>"
    assert cell_text(1.5) == "1.5"


def test_whoever_cannot_wait_bounds_what_is_looked_at():
    data = {"a": {"b": {"c": {"d": [1, 2, 3]}}}}
    path = parse_json_path("{..b..c..d}")
    assert path.results(data, most=1000) == path.results(data) != []
    with pytest.raises(JsonPathError, match="too many values"):
        path.results(data, most=10)


def test_ranges_inside_each_other_are_bounded_and_never_a_traceback():
    with pytest.raises(JsonPathError, match="more than 64 ranges"):
        parse_json_path("{range .}" * 5000).results({"": 1})


def test_a_deep_object_is_walked_without_a_traceback():
    deep: dict = {}
    inner = deep
    for _ in range(20_000):
        inner["a"] = inner = {}
    inner["name"] = "x"
    assert parse_json_path("{..name}").results(deep) == [["x"]]


def test_a_path_is_used_again_as_it_was():
    """client-go's own loses what is before its last range."""
    path: JsonPath = parse_json_path("{.kind}{range .spec.texts[*]}{@}{end}")
    first = path.results(DATA)
    assert path.results(DATA) == first == [["Thing"], ["a"], ["b"], ["c"]]


PIECES = st.sampled_from(
    [*"{}[]().,:*$@'\"\\ \n-+?=<>!&0159aé²", "..", "[?(", ")]", "range ", "end", ".spec", "\\u"]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_whatever_the_template_it_is_an_answer_or_an_error(template):
    [[outcome, text]] = answer(template).items()
    assert outcome in ("out", "parse", "error")
    assert isinstance(text, str)

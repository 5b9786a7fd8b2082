import json
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.storage.template_builder import DEEPEST, MARK
from sampan.apiserver.storage.template_parser import FORMS, LAYOUTS, SETTLED, TemplateParser

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.just("?"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc?"), inner),
    max_leaves=10,
)
WORDS = ("", "a", "b", "same", "long" * 9, 'q"', "b\\", "\\u0041", "n\n", "é", "😀", MARK, "\0")


def filled(value, rng):
    """The same with other strings where there is a `?`."""
    if isinstance(value, dict):
        return {filled(key, rng): filled(each, rng) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, rng) for each in value]
    return rng.choice(WORDS) if value == "?" else value


def pod(number, **more):
    metadata = {"name": f"p{number}", "labels": {"app": f"app-{number % 2}"}}
    status = {"podIP": f"10.0.0.{number}", "times": [{"at": f"{number % 2}", "is": {"x": "y"}}]}
    fields = {f'k:{{"ip":"10.0.0.{number}"}}': {"f:ip": {}}}
    return {"kind": "Pod", "metadata": metadata, "status": status, "fields": fields, **more}


def parsed(texts, obj):
    data = orjson.dumps(obj)
    found = texts.parse(data)
    assert found is None or orjson.dumps(found) == data
    return found


@given(JSON, st.integers(0, 999), st.booleans())
def test_whatever_is_parsed_is_what_a_parser_finds(value, seed, escapes):
    """in the same order, whichever strings, escapes and equal keys there are"""
    texts, rng = TemplateParser(), random.Random(seed)
    for _ in range(4 * SETTLED):
        obj = {"metadata": {"name": rng.choice("abc")}, "rest": filled(value, rng)}
        data = json.dumps(obj, ensure_ascii=escapes, separators=(",", ":")).encode()
        found = texts.parse(data)
        if found is not None:
            assert orjson.dumps(found) == orjson.dumps(orjson.loads(data))


def test_texts_that_differ_in_strings_need_no_parser_after_the_first():
    texts = TemplateParser()
    found = [parsed(texts, pod(number)) for number in range(200)]
    assert all(each is not None for each in found[3 * SETTLED :])
    assert len(texts) == 1


def test_what_comes_again_is_one_object_and_what_is_its_own_is_not():
    texts = TemplateParser()
    one, two = [parsed(texts, pod(number)) for number in range(40)][-1::-2][:2]
    assert one["status"]["times"] is two["status"]["times"]
    assert one["metadata"]["labels"] is two["metadata"]["labels"]
    assert one["metadata"] is not two["metadata"]


def test_an_object_and_its_metadata_are_its_own_even_where_they_are_equal():
    texts = TemplateParser()
    one, two = [parsed(texts, {"kind": "Pod", "metadata": {"name": "x"}}) for _ in range(40)][-2:]
    assert one is not two
    assert one["metadata"] is not two["metadata"]


@pytest.mark.parametrize("strange", ['a"b', "a\\b", "a\nb", "é", MARK, ""])
def test_a_string_that_means_something_else_in_a_text_is_no_danger(strange):
    texts = TemplateParser()
    for number in range(40):
        parsed(texts, pod(number))
    for _ in range(40):
        parsed(texts, pod(1, metadata={"name": strange, "labels": {"app": strange}}))
        parsed(texts, pod(2))


def test_a_quote_where_an_escape_was_awaited_is_no_danger():
    """`k:{\\"ip\\":\\"` ends at an escape; what is there instead may end the string"""
    texts = TemplateParser()
    for number in range(40):
        parsed(texts, pod(number))
    text = orjson.dumps(pod(1)).replace(b'10.0.0.1\\"}":{', b'x":{},"k:y\\"}":{')
    found = texts.parse(text)
    assert found is None or orjson.dumps(found) == orjson.dumps(orjson.loads(text))


def test_what_was_alike_so_far_may_differ_later():
    texts = TemplateParser()
    for number in range(40):
        parsed(texts, pod(number, image="one"))
    assert parsed(texts, pod(1, image="two")) is None
    for number in range(SETTLED):
        parsed(texts, pod(number, image=f"image-{number}"))
    assert parsed(texts, pod(1, image="three"))["image"] == "three"
    assert len(texts) == 1


def test_forms_and_layouts_are_bounded():
    texts = TemplateParser()
    for number in range(3 * FORMS):
        parsed(texts, {"metadata": {}, "list": [0] * number})
    assert len(texts) == FORMS
    for length in range(3 * LAYOUTS):
        parsed(texts, {"metadata": {"name": "x" * length, "uid": "y" * (length % 2)}})
    assert len(texts._forms[0]._layouts) <= LAYOUTS


@pytest.mark.parametrize("levels", [DEEPEST, 250])
def test_what_is_nested_deeply_is_a_parsers(levels):
    texts, rng = TemplateParser(), random.Random(1)
    for _ in range(40):
        deep = str(rng.random())
        for _ in range(levels):
            deep = [deep]
        assert parsed(texts, {"metadata": {"name": "x"}, "deep": deep}) is None


def test_texts_of_which_no_two_are_alike_are_soon_left_alone():
    """to learn takes several times as long as to parse"""
    texts, looks = TemplateParser(), []
    texts._learn = looks.append
    for number in range(1600):
        texts.parse(b'{"metadata":{"name":%d}}' % number)
    assert len(looks) < 400

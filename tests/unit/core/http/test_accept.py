import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.core.http.accept import parse_accept


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("application/json", ["application/json"]),
        ("application/json;q=0.1,application/yaml", ["application/yaml", "application/json"]),
        ("*/*, application/json", ["application/json", "*/*"]),
        ("application/*,application/yaml", ["application/yaml", "application/*"]),
        ("*", ["*/*"]),
        ("a,b/c/d,,e/f", ["e/f"]),
        ("a/b;q=x,c/d;q=0.1", ["c/d", "a/b"]),
    ],
)
def test_what_is_wanted_more_comes_first(header, found):
    assert [f"{one.type}/{one.subtype}" for one in parse_accept(header)] == found


def test_parameters_are_read():
    (clause,) = parse_accept("application/json; as=Table;v=v1 ; g=meta.k8s.io;a=b=c;d")
    assert clause.parameters == {"as": "Table", "v": "v1", "g": "meta.k8s.io"}


@given(st.text(max_size=200))
def test_any_header_is_read(header):
    assert len(parse_accept(header)) <= header.count(",") + 1

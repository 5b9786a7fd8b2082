import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.errors import BadRequest
from sampan.apiserver.registry.continue_token import ContinueToken, decode_token, encode_token


def _text(data):
    return base64.urlsafe_b64encode(data.encode()).rstrip(b"=").decode()


@given(
    st.integers(min_value=1, max_value=2**62),
    st.from_regex(r"[a-z]+(/[a-z]+)?\x00", fullmatch=True),
)
def test_a_token_is_read_as_it_was_written(revision, start):
    token = ContinueToken(revision, start)
    assert decode_token(encode_token(token)) == token


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "illegal base64 data at input byte 0"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("a b", "illegal base64 data at input byte 1"),
        ("ü", "illegal base64 data at input byte 0"),
        (_text("abc"), "invalid character 'a' looking for beginning of value"),
        (_text('{"v":'), "unexpected end of JSON input"),
        (_text("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken"),
        (
            _text('{"rv":"x"}'),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
        (
            _text('{"rv":1.5}'),
            "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
        ),
        (_text("null"), "server does not recognize this encoded version "),
        (_text('{"v":"v1"}'), "server does not recognize this encoded version v1"),
        (
            _text('{"v":"meta.k8s.io/v1","start":"a"}'),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            _text('{"v":"meta.k8s.io/v1","rv":5}'),
            "encoded start key empty (version meta.k8s.io/v1)",
        ),
        (_text('{"v":"meta.k8s.io/v1","rv":-1,"start":"../a"}'), "../a"),
        (_text('{"v":"meta.k8s.io/v1","rv":-1,"start":"a/"}'), "a/"),
    ],
)
def test_a_token_that_is_garbled_is_refused_with_its_reason(text, why):
    with pytest.raises(BadRequest) as caught:
        decode_token(text)
    assert str(caught.value) == f"invalid continue token: continue key is not valid: {why}"

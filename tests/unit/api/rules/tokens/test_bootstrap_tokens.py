from base64 import b64encode

from sampan.api.rules.tokens.bootstrap_tokens import seconds_left, token_data


def test_what_is_no_text_is_left_out():
    data = {"a": b64encode(b"text").decode(), "b": "a", "c": b64encode(b"\xff").decode()}
    assert token_data({"data": data}) == {"a": "text"}
    assert token_data({}) == {}


def test_a_token_expires_when_it_says_or_at_once_where_nobody_can_tell():
    assert seconds_left({}, 0.0) is None
    assert seconds_left({"expiration": "1970-01-01T00:01:00Z"}, 20.0) == 40.0
    assert seconds_left({"expiration": "1970-01-01T00:01:00Z"}, 61.0) == 0.0
    assert seconds_left({"expiration": "tomorrow"}, 0.0) == 0.0

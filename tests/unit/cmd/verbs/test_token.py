from sampan.api.objects import seconds_of
from sampan.cmd.verbs.token import token_secret


def test_a_token_is_good_for_a_day_and_for_one_thing():
    secret = token_secret("abcdef", "0123456789abcdef", 1_000_000.0)
    assert secret["metadata"]["name"] == "bootstrap-token-abcdef"
    data = secret["stringData"]
    assert seconds_of(data["expiration"]) == 1_000_000 + 86400
    assert [key for key in data if key.startswith("usage-")] == ["usage-bootstrap-authentication"]

"""What /flagz shows of the command line."""

import pytest

from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.flags.shown_flags import keep_flags, shown_flags
from sampan.cmd.main import SERVING

_NO_SECRET = {"service-account-extend-token-expiration"}


def shown(*words):
    parser = parser_of_verbs(words[0])
    given = parser.parse_args(words)
    keep_flags(parser, given)
    return shown_flags(given)


def test_values_are_as_go_prints_them():
    found = shown(
        "scheduler", "--config", "/a.yaml", "--leader-elect-lease-duration", "90s",
        "--authorization-always-allow-paths", "/healthz,/livez", "--leader-elect", "false",
    )  # fmt: skip
    assert found["config"] == "/a.yaml"
    assert found["leader-elect-lease-duration"] == "1m30s"
    assert found["authorization-always-allow-paths"] == "[/healthz,/livez]"
    assert found["leader-elect"] == "false"
    assert found["secure-port"] == "10259"
    assert "help" not in found


@pytest.mark.parametrize("verb", SERVING)
def test_no_flag_is_a_secret(verb):
    """Who may read /flagz may not know a token: secrets are in files, whose names are shown."""
    words = ("token", "password", "secret", "key")
    for name in shown(verb):
        telling = [word for word in words if word in name]
        assert not telling or name in _NO_SECRET or name.endswith(("file", "-key")), name

"""cmd/main.py: flags become settings."""

import pytest

from sampan.cmd import main
from sampan.cmd.settings import UpSettings


def settings_of(*flags):
    return main._up_settings(main._parser().parse_args(["up", *flags]))


def test_without_flags_up_has_the_defaults_of_its_settings():
    assert settings_of() == UpSettings()


def test_flags_become_settings():
    found = settings_of("--runtime", "simulated", "--nodes", "5", "--port", "0", "--keep-pods")
    assert found == UpSettings(runtime="simulated", nodes=5, port=0, keep_pods=True)


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--port", "70000"], "port"),
        (["--nodes", "0"], "nodes"),
        (["--runtime", "docker"], "docker"),
        (["--no-such-flag"], "no-such-flag"),
    ],
)
def test_a_wrong_flag_is_named_and_the_exit_code_is_2(flags, word, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["up", *flags])
    assert ended.value.code == 2
    assert word in capsys.readouterr().err


def test_version_says_which_kubernetes(capsys):
    assert main.main(["version"]) == 0
    assert "v1.35" in capsys.readouterr().out


def test_no_verb_shows_the_help(capsys):
    assert main.main([]) == 2
    assert "examples:" in capsys.readouterr().err

"""cmd/main.py: words in, an exit code out."""

import pytest

from sampan.cmd import main


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

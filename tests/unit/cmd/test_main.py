"""cmd/main.py: words in, an exit code out."""

import pytest

from sampan.cmd import main
from sampan.cmd.flags.parser import parser_of_verbs


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


def test_the_environment_reaches_the_verbs_of_verbs(monkeypatch):
    monkeypatch.setenv("SAMPAN_DATA_DIR", "elsewhere")
    words = main._with_defaults(parser_of_verbs(), ["image", "list"])
    assert words == ["image", "list", "--data-dir=elsewhere"]


@pytest.mark.parametrize("verb", ["why", "schedule"])
def test_a_name_leads_to_the_kubeconfig_of_its_cluster(verb, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    words = {"why": ["pod/x"], "schedule": ["-f", "x"]}[verb]
    given = parser_of_verbs().parse_args([verb, *words, "--name", "dev"])
    main._find_cluster(given)
    assert given.kubeconfig == f"{tmp_path}/sampan/dev/kubeconfig"

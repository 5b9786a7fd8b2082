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


def node_settings_of(*flags):
    return main._node_settings(main._parser().parse_args(["kubelet", *flags]))


def test_flags_of_a_node_become_settings():
    found = node_settings_of(
        "--kubeconfig", "k", "--node-labels", "a=b,c=", "--register-node", "false",
        "--register-with-taints", "x=y:NoExecute,z:NoSchedule",
        "--manifest-url-header", "X-Token: t", "--manifest-url", "http://u/",
    )  # fmt: skip
    node = found.up.node
    assert (found.kubeconfig, node.standalone, node.register) == ("k", False, False)
    assert node.labels == {"a": "b", "c": ""}
    assert node.taints == (
        {"key": "x", "value": "y", "effect": "NoExecute"},
        {"key": "z", "effect": "NoSchedule"},
    )
    assert node.manifest_url_headers == (("X-Token", "t"),)


def test_a_node_without_an_api_is_one_with_manifests_only():
    assert node_settings_of("--manifests", "d").up.node.standalone
    assert not node_settings_of("--manifests", "d", "--join", "x").up.node.standalone
    assert not node_settings_of().up.node.standalone


@pytest.mark.parametrize(
    "flags",
    [
        ["--node-labels", "a"],
        ["--register-with-taints", "a=b:Never"],
        ["--register-node", "perhaps"],
        ["--manifest-url-header", "x"],
    ],
)
def test_a_wrong_flag_of_a_node_is_named(flags, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["kubelet", *flags])
    assert ended.value.code == 2
    assert flags[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], ("*",)),
        (["--controllers=*,-job"], ("*", "-job")),
        (["--controllers", "-job,*"], ("-job", "*")),
        (["--controllers", "-*"], ("-*",)),
        (["--controllers", "*", "--controllers=-job"], ("*", "-job")),
    ],
)
def test_controllers_are_named_in_every_spelling(flags, wanted):
    given = main._parser().parse_args(main._join(["up", *flags]))
    assert main._up_settings(given).controllers == wanted


def test_the_scheduler_may_be_left_out():
    assert settings_of().scheduler
    assert not settings_of("--scheduler=false").scheduler

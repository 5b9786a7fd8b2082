"""cmd/flags/node_process_flags.py: flags of a node's process become settings."""

import pytest

from sampan.cmd import main
from sampan.cmd.flags.node_process_flags import node_settings
from sampan.cmd.flags.parser import parser_of_verbs


def node_settings_of(*flags):
    return node_settings(parser_of_verbs().parse_args(["kubelet", *flags]))


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

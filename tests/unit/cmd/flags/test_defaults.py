"""cmd/flags/defaults.py: what a file and the environment say about flags."""

import pytest

from sampan.cmd import main
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.parser import parser_of_verbs


def parsed(words, environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parser = parser_of_verbs()
    return parser.parse_args(main._with_defaults(parser, words))


def written(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return str(path)


def test_a_file_sets_any_flag(tmp_path, monkeypatch):
    path = written(tmp_path, "kind: ClusterConfiguration\ndataDir: /d\nnodes: 3\ndetach: true\n")
    given = parsed(["up", "--config", path], {}, monkeypatch)
    assert (given.data_dir, given.nodes, given.detach) == ("/d", 3, True)


def test_the_command_line_wins_then_the_environment_then_the_file(tmp_path, monkeypatch):
    path = written(tmp_path, "port: 1\nnodes: 1\nlog-level: error\n")
    environment = {"SAMPAN_PORT": "2", "SAMPAN_NODES": "2", "SAMPAN_CONFIG": path}
    given = parsed(["up", "--port", "3"], environment, monkeypatch)
    assert (given.port, given.nodes, given.log_level) == (3, 2, "error")


def test_the_environment_reaches_every_verb_that_has_the_flag(monkeypatch):
    assert parsed(["down"], {"SAMPAN_DATA_DIR": "/d"}, monkeypatch).data_dir == "/d"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope: 1\n", "nope is no setting"),
        ("[]\n- x", "cluster.yaml"),
        ("- x\n", "not a mapping"),
        ("detach: perhaps\n", "true or false"),
        ("kind: Pod\n", "is not sampan.dev/v1 ClusterConfiguration"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, monkeypatch, text, message):
    with pytest.raises(CannotStart, match=message):
        parsed(["up", "--config", written(tmp_path, text)], {}, monkeypatch)


def test_the_configuration_of_a_scheduler_is_its_own(tmp_path, monkeypatch):
    path = written(tmp_path, "kind: KubeSchedulerConfiguration\nprofiles: []\n")
    given = parsed(["scheduler", "--config", path], {"SAMPAN_KUBECONFIG": "k"}, monkeypatch)
    assert (given.scheduler_config, given.kubeconfig) == (path, "k")


def test_what_may_be_given_again_is_a_list(tmp_path, monkeypatch):
    path = written(tmp_path, "with: [a.yaml, b.yaml]\nregistryMirror: {docker.io: 'https://m'}\n")
    given = parsed(["up", "--config", path], {}, monkeypatch)
    assert given.manifests_to_apply == ["a.yaml", "b.yaml"]
    assert given.registry_mirror == [("docker.io", "https://m")]
    given = parsed(["up"], {"SAMPAN_WITH": "a.yaml,b.yaml"}, monkeypatch)
    assert given.manifests_to_apply == ["a.yaml", "b.yaml"]

"""cmd/verbs/machine/config_explain.py: every flag of `up` is a setting that is explained."""

import json

import jsonschema
import pytest

from sampan.cmd import entry


def test_every_setting_is_listed_with_its_variable(capsys):
    assert entry.main(["config", "explain"]) == 0
    said = capsys.readouterr().out
    for text in ("dataDir <string>", "SAMPAN_DATA_DIR", "nodes <integer>", "detach <boolean>"):
        assert text in said
    assert "readyFd" not in said


def test_one_setting(capsys):
    assert entry.main(["config", "explain", "runtime"]) == 0
    assert "simulated" in capsys.readouterr().out
    assert entry.main(["config", "explain", "nope"]) == 1
    assert "sampan config explain" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "is_valid"),
    [
        ({"apiVersion": "sampan.dev/v1", "kind": "ClusterConfiguration", "nodes": 3}, True),
        ({"runtime": "simulated", "detach": True, "controllers": ["*", "-job"]}, True),
        ({"nodez": 3}, False),
        ({"runtime": "docker"}, False),
        ({"nodes": "three"}, False),
    ],
)
def test_the_schema_takes_what_up_takes(document, is_valid, capsys):
    assert entry.main(["config", "explain", "--schema"]) == 0
    validator = jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out))
    assert validator.is_valid(document) == is_valid

"""cmd/verbs/versions/gates.py: the table of feature gates."""

import json

import pytest

from sampan.api import features
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.releases import KEPT
from sampan.cmd.settings import ReleaseChoices
from sampan.cmd.verbs.versions import gates


@pytest.fixture(autouse=True)
def default_version():
    """Whatever a test chooses is over with it."""
    with features.used(features.Release()):
        yield


def shown(capsys, choices, data_dir):
    assert gates.run(choices, str(data_dir), as_json=True) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_every_gate_of_a_version_is_shown_with_its_value(capsys, tmp_path):
    rows = shown(capsys, ReleaseChoices("1.36", feature_gates=("EventedPLEG=true",)), tmp_path)
    assert rows["EventedPLEG"] == {
        "name": "EventedPLEG", "stage": "Alpha", "since": "1.26", "default": False,
        "locked": False, "value": True, "sampan": "yes (nothing to see)",
    }  # fmt: skip
    assert "HPAGeneration" not in rows


def test_without_a_version_it_is_that_of_the_cluster_that_is_there(capsys, tmp_path):
    open_data_dir(str(tmp_path)).remember(**{KEPT: "1.37"})
    assert "HPAGeneration" in shown(capsys, ReleaseChoices(), tmp_path)


def test_the_text_is_a_table_and_mistakes_are_one_sentence(capsys, tmp_path):
    assert gates.run(ReleaseChoices("1.35"), str(tmp_path), as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "STAGE", "SINCE", "DEFAULT", "VALUE", "SAMPAN"]
    assert gates.run(ReleaseChoices("1.2"), str(tmp_path), as_json=False) == 1
    assert "there is no Kubernetes 1.2 here" in capsys.readouterr().err

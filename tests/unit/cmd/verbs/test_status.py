"""cmd/verbs/status.py: facts about a cluster, running or not."""

import json

from sampan.cmd.cluster.data_dir import Lock, open_data_dir
from sampan.cmd.verbs import status


def test_a_stopped_cluster_says_so(tmp_path, capsys):
    data = open_data_dir(str(tmp_path / "data"))
    assert status.run(str(data.root), as_json=True) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "stopped"
    assert found["data"] == str(data.root)


def test_a_process_whose_api_does_not_answer_is_a_warning(tmp_path):
    data = open_data_dir(str(tmp_path / "data"))
    lock = Lock.take(data)
    try:
        found = status.facts(data)
    finally:
        lock.release()
    assert found["state"] == "running"
    assert "MiB" in found["memory"]
    assert any("does not answer" in warning for warning in found["warnings"])


def test_no_cluster_is_one_sentence(tmp_path, capsys):
    assert status.run(str(tmp_path), as_json=False) == 1
    assert "sampan up" in capsys.readouterr().err

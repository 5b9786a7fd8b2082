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


def test_memory_is_a_table_for_each_process_with_what_is_small_in_one_line():
    parts = [
        {"name": "API objects: pods", "bytes": 300 * 2**20, "count": 30_000},
        {"name": "interpreter and code", "bytes": 50 * 2**20, "count": 0},
        {"name": "traces", "bytes": 2**20, "count": 0},
    ]
    found = {"residentBytes": 400 * 2**20, "parts": parts, "restBytes": 49 * 2**20}
    lines = status.memory_lines({"apiserver": found, "scheduler": {}})
    assert lines[1] == "memory of apiserver: 400 MiB"
    assert " ".join(lines[2].split()) == "API objects: pods 300.0 MiB 30000 of 10.2 KiB"
    assert [line.split()[:2] for line in lines[4:6]] == [["smaller", "parts"], ["not", "told"]]
    assert "1.0 MiB" in lines[4]
    assert "memory of scheduler: 0 MiB" in lines


def test_a_cluster_says_which_kubernetes_it_is(tmp_path):
    """[V1]"""
    data = open_data_dir(str(tmp_path / "d"))
    assert "(v1.35.0+" in status.facts(data)["version"]
    data.remember(kubernetes="1.37")
    assert "(v1.37.0+" in status.facts(data)["version"]

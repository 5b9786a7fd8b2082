"""cmd/verbs/machine/upgrade.py: what this version can go on with."""

import sqlite3

from sampan.cmd.cluster import pki
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.flags import machine_flags
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.verbs.machine import upgrade
from sampan.core.clock import SystemClock
from sampan.store.sqlite_file import APPLICATION_ID


def cluster(path, version=1):
    data = open_data_dir(str(path))
    ensure(data.pki, pki.component_leaves(), SystemClock())
    with sqlite3.connect(data.store) as file:
        file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        file.execute(f"PRAGMA user_version = {version}")
        file.execute("CREATE TABLE t (a)")
    file.close()
    data.remember(version="0.0.1")
    return data


def test_a_whole_cluster_can_go_on(tmp_path, capsys):
    data = cluster(tmp_path / "d")
    before = {path: path.read_bytes() for path in data.root.rglob("*") if path.is_file()}
    assert upgrade.run(str(data.root), []) == 0
    said = capsys.readouterr().out
    assert "0.0.1 wrote it" in said
    assert "can go on" in said
    assert before == {path: path.read_bytes() for path in data.root.rglob("*") if path.is_file()}


def test_what_is_newer_or_damaged_is_named(tmp_path, capsys):
    data = cluster(tmp_path / "d", version=9999)
    (data.pki / "ca.key").write_text("garbage")
    data.format_file.write_text("99\n")
    assert upgrade.run(str(data.root), ["typo.yaml: nodez is no setting"]) == 1
    said = capsys.readouterr().out
    assert said.count("PROBLEM") == 4
    assert "use the newer sampan that wrote it" in said
    assert "ca.key is damaged" in said
    data.store.write_text("no database " * 100)
    assert not upgrade.store(data).is_ok


def test_a_configuration_is_checked_against_this_version(tmp_path, capsys):
    path = tmp_path / "c.yaml"
    parser = parser_of_verbs()
    for text, is_good in (("nodes: 3", True), ("nodez: 3", False), ("nodes: none", False)):
        path.write_text(text)
        assert (machine_flags.problems_of(parser, str(path)) == []) == is_good
    assert machine_flags.problems_of(parser, "") == []
    capsys.readouterr()

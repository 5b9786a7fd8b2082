"""cmd/verbs/machine/log.py: the log of a cluster in the background."""

from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.verbs.machine import log


def test_the_last_lines_are_shown(tmp_path, capsys):
    data = open_data_dir(str(tmp_path / "data"))
    data.log_file.write_text("one\ntwo\nthree\n")
    assert log.run(str(data.root), follow=False, lines=2) == 0
    assert capsys.readouterr().out == "two\nthree\n"


def test_following_ends_with_the_cluster(tmp_path, capsys):
    data = open_data_dir(str(tmp_path / "data"))
    data.log_file.write_text("one\n")
    assert log.run(str(data.root), follow=True, lines=-1) == 0
    assert capsys.readouterr().out == "one\n"


def test_where_there_is_none_it_is_said_why(tmp_path, capsys):
    assert log.run(str(tmp_path), follow=False, lines=-1) == 1
    assert "there is no sampan cluster" in capsys.readouterr().err
    open_data_dir(str(tmp_path / "data"))
    assert log.run(str(tmp_path / "data"), follow=False, lines=-1) == 1
    assert "--detach" in capsys.readouterr().err

"""cmd/verbs/machine/service.py: the unit, and what is done with it."""

from pathlib import Path

import pytest

from sampan.cmd import main
from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.machine import service


def test_the_unit_starts_the_cluster_with_its_flags(capsys, tmp_path):
    words = ["service", "install", "--print", "--data-dir", str(tmp_path / "my data")]
    assert main.main([*words, "--", "--bind-address", "0.0.0.0"]) == 0
    unit = capsys.readouterr().out
    [start] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert start.endswith(f'up --data-dir "{tmp_path}/my data" --bind-address 0.0.0.0')
    assert "WantedBy=multi-user.target" in unit


def test_a_wrong_flag_is_said_before_the_next_boot(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main.main(
            ["service", "install", "--print", "--data-dir", str(tmp_path), "--", "--nodez", "1"]
        )
    assert "--nodez" in capsys.readouterr().err


def test_what_systemd_would_read_otherwise_is_escaped():
    text = service.unit_text(Path("/a b%c"), ["$HOME", 'x"y'])
    assert '"/a b%%c" $$HOME "x\\"y"' in text


@pytest.mark.parametrize(
    ("root", "flag"),
    [("/data\nExecStartPre=/bin/evil", "--x"), ("/data", "a\nUser=nobody"), ("/data", "a\rb")],
)
def test_what_would_be_a_line_of_its_own_is_refused(root, flag):
    with pytest.raises(CannotStart, match="cannot be said in a unit"):
        service.unit_text(Path(root), [flag])


def test_no_word_continues_its_line():
    text = service.unit_text(Path("/data\\"), ["\\"])
    assert not any(line.endswith("\\") for line in text.splitlines())


def test_a_unit_is_written_for_root_alone_and_through_no_link(tmp_path):
    path, elsewhere = tmp_path / "sampan-x.service", tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    service.install(path, "text", lambda words: None)
    assert not elsewhere.exists()
    assert path.stat().st_mode & 0o777 == 0o600


def test_install_and_uninstall_in_order(tmp_path):
    said = []
    path = tmp_path / "sampan-x.service"
    service.install(path, "text", said.append)
    assert path.read_text() == "text"
    assert service.uninstall(path, said.append)
    assert not path.exists()
    assert not service.uninstall(path, said.append)
    assert said == [["daemon-reload"], ["enable", "--now", path.name],
                    ["disable", "--now", path.name], ["daemon-reload"]]  # fmt: skip


def test_names_keep_clusters_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert service.unit_name(tmp_path / "sampan" / "default") == "sampan.service"
    assert service.unit_name(tmp_path / "sampan" / "dev") == "sampan-dev.service"


@pytest.mark.skipif(service.RUNNING.exists(), reason="systemd runs here")
def test_a_machine_without_systemd_is_told_so(tmp_path):
    with pytest.raises(CannotStart, match="--print"):
        service.run("install", str(tmp_path), [], only_print=False)

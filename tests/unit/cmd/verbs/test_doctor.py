"""cmd/verbs/doctor.py: each finding is ok, or says what to do."""

import socket

from sampan.cmd.verbs import doctor


def test_every_problem_has_a_remedy(tmp_path, capsys):
    findings = list(doctor.examine(str(tmp_path / "data"), 0))
    assert len({finding.what for finding in findings}) == len(findings)
    for finding in findings:
        assert finding.is_ok or finding.remedy
    assert doctor.run(str(tmp_path / "data"), 0) in (0, 1)
    assert len(capsys.readouterr().out.splitlines()) >= len(findings)


def test_a_port_that_somebody_else_has_is_a_problem(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        [finding] = [one for one in doctor.examine(str(tmp_path), port) if one.what == "port"]
    assert not finding.is_ok
    assert "--port" in finding.remedy

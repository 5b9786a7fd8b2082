"""The file behind --simulated-scenario."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.scenario import scenario_in
from sampan.kubelet.simulated_scenario import NOTHING

GOOD = """
apiVersion: simulated.sampan.dev/v1
kind: Scenario
rules: [{script: {exit-code: 1}}]
"""


def test_no_file_is_no_scenario():
    assert scenario_in("") is NOTHING


def test_a_file_becomes_rules(tmp_path):
    (tmp_path / "s.yaml").write_text(GOOD)
    assert len(scenario_in(str(tmp_path / "s.yaml")).rules) == 1


@pytest.mark.parametrize(
    ("text", "why"), [("rules: [", "s.yaml"), (GOOD.replace("exit", "exot"), "exot-code: unknown")]
)
def test_a_bad_file_is_one_sentence(tmp_path, text, why):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(CannotStart, match=why):
        scenario_in(str(tmp_path / "s.yaml"))
    with pytest.raises(CannotStart, match="No such file"):
        scenario_in(str(tmp_path / "absent.yaml"))

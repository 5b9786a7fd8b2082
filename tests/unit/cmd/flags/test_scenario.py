"""The file behind --simulated-scenario."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.scenario import scenario_in, scripts_in

GOOD = """
apiVersion: simulated.sampan.dev/v1
kind: Scenario
rules: [{script: {exit-code: 1}}]
"""


OF_A_JOB = {"batch.kubernetes.io/job-name": "once"}
ENDS = "simulated.sampan.dev/exit-after-seconds"


def test_without_a_file_only_the_pods_of_jobs_end():
    scenario = scenario_in("")
    assert scenario.annotations("default", "once-x", OF_A_JOB, {}, "uid") == {ENDS: "1"}
    assert scenario.annotations("default", "web", {"app": "web"}, {}, "uid") == {}
    own = {ENDS: "never"}
    assert scenario.annotations("default", "once-x", OF_A_JOB, own, "uid") == own


def test_a_file_becomes_rules_that_come_before_the_end_of_jobs(tmp_path):
    (tmp_path / "s.yaml").write_text(GOOD.replace("exit-code", "exit-after-seconds"))
    scenario = scenario_in(str(tmp_path / "s.yaml"))
    assert scenario.annotations("default", "web", {}, {}, "uid") == {ENDS: "1"}
    (tmp_path / "s.yaml").write_text(GOOD.replace("exit-code: 1", "exit-after-seconds: never"))
    scenario = scenario_in(str(tmp_path / "s.yaml"))
    assert scenario.annotations("default", "once-x", OF_A_JOB, {}, "uid") == {ENDS: "never"}


@pytest.mark.parametrize(
    ("text", "why"), [("rules: [", "s.yaml"), (GOOD.replace("exit", "exot"), "exot-code: unknown")]
)
def test_a_bad_file_is_one_sentence(tmp_path, text, why):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(CannotStart, match=why):
        scenario_in(str(tmp_path / "s.yaml"))
    with pytest.raises(CannotStart, match="no such file"):
        scenario_in(str(tmp_path / "absent.yaml"))


def test_scripts_are_what_a_pod_says_and_what_a_scenario_adds(tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "apiVersion: simulated.sampan.dev/v1\nkind: Scenario\n"
        "rules: [{selector: {matchLabels: {app: web}}, script: {usage-cpu: 240m}}]\n"
    )
    meta = {"name": "p", "namespace": "d", "uid": "u", "labels": {"app": "web"}}
    pod = {"kind": "Pod", "metadata": {**meta, "annotations": {"a": "b"}}}
    added = {"simulated.sampan.dev/usage-cpu": "240m"}
    assert scripts_in(str(file))(pod) == {**added, "a": "b"}
    assert scripts_in(str(file))({**pod, "kind": "Service"}) == {"a": "b"}
    assert scripts_in("")(pod) == {"a": "b"}

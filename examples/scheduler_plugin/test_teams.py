"""The plugin in a real scheduler, on simulated nodes."""

from pathlib import Path

import pytest

CONFIG = Path(__file__).with_name("scheduler.yaml")


def pod(name, team):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"example.com/team": team}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


@pytest.mark.sampan(nodes=2, scheduler_config=CONFIG)
def test_teams_do_not_share_nodes(sampan):
    sampan.apply([pod("red-1", "red"), pod("blue-1", "blue")])
    sampan.wait_for("pod/red-1", "Ready", timeout="60s")
    sampan.wait_for("pod/blue-1", "Ready", timeout="60s")
    sampan.apply([pod(f"red-{number}", "red") for number in range(2, 5)])
    nodes = {
        sampan.wait_for(f"pod/red-{number}", "Ready", timeout="60s")["spec"]["nodeName"]
        for number in range(1, 5)
    }
    assert len(nodes) == 1
    assert sampan.get("pod/blue-1")["spec"]["nodeName"] not in nodes


@pytest.mark.sampan(nodes=2, scheduler_config=CONFIG)
def test_a_third_team_has_no_node_and_hears_why(sampan):
    sampan.apply([pod("red", "red"), pod("blue", "blue")])
    sampan.wait_for("pod/red", "Ready", timeout="60s")
    sampan.wait_for("pod/blue", "Ready", timeout="60s")
    sampan.apply(pod("green", "green"))
    sampan.assert_event(
        "FailedScheduling", "pod/green", containing="had another team's pods", timeout="60s"
    )

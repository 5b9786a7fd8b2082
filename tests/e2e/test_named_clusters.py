"""Several clusters of one user, side by side: by name, and in one kubeconfig."""

import json
import subprocess

import pytest

from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow]


@pytest.fixture
def sampan(tmp_path):
    """The command of a user with a home of its own; whatever runs in the end is removed."""
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": "", "KUBECONFIG": ""}

    def run(*words, code=0):
        done = subprocess.run(
            sampan_command(*words), capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env={**environment(), **home}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    yield run
    for cluster in json.loads(run("list", "-o", "json")):
        run("reset", "--yes", "--data-dir", cluster["data"])


def test_two_named_clusters_keep_apart(sampan, tmp_path):
    for name, nodes in (("dev", "1"), ("test", "2")):
        sampan(
            "up", "--name", name, "--use", "--detach", "--runtime", "simulated", "--nodes", nodes
        )
    listed = {item["name"]: item for item in json.loads(sampan("list", "-o", "json"))}
    assert {name: item["state"] for name, item in listed.items()} == {
        "dev": "running", "test": "running",
    }  # fmt: skip
    assert listed["dev"]["address"] != listed["test"]["address"]
    assert listed["dev"]["data"] == str(tmp_path / ".local/state/sampan/dev")
    # Each has a context of its own; the last one is current.
    assert sampan("config", "current-context").strip() == "sampan-test"
    for name, nodes in (("dev", 1), ("test", 2)):
        words = ("--context", f"sampan-{name}", "get", "nodes", "-o", "name")
        assert len(sampan(*words).split()) == nodes
    assert "2 of 2 ready" in sampan("status", "--name", "test")
    # One goes, with its context; the other one is current again and goes on.
    sampan("reset", "--yes", "--name", "test")
    assert sampan("config", "current-context").strip() == "sampan-dev"
    assert sampan("config", "get-contexts", "-o", "name").split() == ["sampan-dev"]
    assert len(sampan("get", "nodes", "-o", "name").split()) == 1
    assert "stopped process" in sampan("down", "--name", "dev")
    assert "nothing runs" in sampan("down", "--name", "dev")
    assert [item["state"] for item in json.loads(sampan("list", "-o", "json"))] == ["stopped"]
    # Again: the same port, as far as nobody else took it, and the same context.
    sampan("up", "--name", "dev", "--use", "--detach", "--runtime", "simulated")
    assert sampan("config", "get-contexts", "-o", "name").split() == ["sampan-dev"]


def test_without_a_name_the_data_is_in_the_state_directory_or_here(sampan, tmp_path):
    sampan("up", "--detach", "--runtime", "none", "--port", "0")
    assert (tmp_path / ".local/state/sampan/default/format").exists()
    assert "stopped process" in sampan("down")
    sampan("reset", "--yes")
    (tmp_path / "sampan-data").mkdir()
    sampan("up", "--detach", "--runtime", "none", "--port", "0")
    assert (tmp_path / "sampan-data/format").exists()
    assert "running" in sampan("list")

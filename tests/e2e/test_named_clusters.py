"""Several clusters of one user, side by side: by name, and in one kubeconfig."""

import json
import os
import re
import shlex
import shutil
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


# What is typed, and what must be offered for it.
COMPLETED = (
    ("desc", "describe"),
    ("why po", "pods"),
    ("why pod/we", "pod/web"),
    ("logs web -c we", "web"),
    ("get -n kube-p", "kube-public"),
    ("up --runtime si", "simulated"),
    ("down --name de", "dev"),
    ("get pods --name de", "dev"),
    ("snapshot sa", "save"),
    ("config use-context sam", "sampan-dev"),
)
SCRIPTS = {
    "bash": "source <(sampan completion bash); COMP_WORDS=(sampan TYPED); "
    "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); __start_sampan; printf '%s\\n' ${COMPREPLY[@]}",
    "fish": 'sampan completion fish | source; complete -C "sampan TYPED"',
    "zsh": 'autoload -Uz compinit; compinit -u; source <(sampan completion zsh); '
    'compadd() { print -l -- "$@"; }; _describe() { print -l -- "${(@P)argv[-1]}"; }; '
    "words=(sampan TYPED); CURRENT=${#words}; _sampan",
}  # fmt: skip


def test_every_verb_finds_the_cluster_and_shells_complete_its_names(sampan, tmp_path):
    """Context, the only one that runs, --name; own verbs and kubectl's."""
    nodes = ("--runtime", "simulated", "--node-names", "node-0")
    sampan("up", "--name", "dev", "--use", "--detach", *nodes)
    sampan("run", "web", "--image=web")
    sampan("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    asked = {
        ("status",): "running", ("log",): "", ("get", "nodes"): "node-0",
        ("why", "node/node-0"): "Ready", ("kubeconfig", "show"): "clusters:",
        ("upgrade",): "this is", ("snapshot", "list"): "", ("top", "nodes"): "node-0",
    }  # fmt: skip
    for words, said in asked.items():
        assert said in sampan(*words), words
        assert said in sampan(*words, "--name", "dev"), words
    (tmp_path / ".kube" / "config").rename(tmp_path / "kept")
    for words, said in asked.items():
        assert said in sampan(*words), words
    (tmp_path / "kept").rename(tmp_path / ".kube" / "config")
    program = tmp_path / "sampan"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(sampan_command())} "$@"\n')
    program.chmod(0o755)
    home = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for shell in filter(shutil.which, SCRIPTS):
        for typed, wanted in COMPLETED:
            done = subprocess.run(
                [shell, "-c", SCRIPTS[shell].replace("TYPED", typed)], cwd=tmp_path,
                env={**environment(), **home}, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            offered = [re.split("[\t:]", line)[0] for line in done.stdout.splitlines()]
            assert wanted in offered, (shell, typed, done.stdout, done.stderr)

"""The operator runs as it is, as a process of its own, against a cluster of each test's own."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from sampan.testing import chaos
from sampan.testing.kit.chaos import Chaos

HERE = Path(__file__).parent
COMMAND = [
    sys.executable,
    "-m",
    "kopf",
    "run",
    "--all-namespaces",
    "--quiet",
    str(HERE / "operator_of_greetings.py"),
]


def greeting(who, name="mine"):
    return {
        "apiVersion": "example.com/v1",
        "kind": "Greeting",
        "metadata": {"name": name},
        "spec": {"who": who},
    }


@contextmanager
def running(cluster):
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    process = subprocess.Popen(COMMAND, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def text(cluster, name="mine"):
    return ((cluster.find(f"configmap/{name}") or {}).get("data") or {}).get("text")


def test_a_greeting_has_its_text_and_takes_it_along(sampan):
    sampan.apply(HERE / "crd.yaml")
    with running(sampan):
        sampan.apply(greeting("world"))
        sampan.eventually(lambda: text(sampan) == "hello world", "the text is there", "60s")
        sampan.apply(greeting("moon"))
        sampan.eventually(lambda: text(sampan) == "hello moon", "the text follows", "60s")
        sampan.delete("greeting/mine")
        sampan.assert_gone("configmap/mine", timeout="60s")


def test_it_survives(sampan):
    sampan.apply(HERE / "crd.yaml")
    sampan.apply([greeting("a", "one"), greeting("b", "two")])
    chaos(
        sampan,
        COMMAND,
        {
            "both are greeted": lambda: (
                (text(sampan, "one"), text(sampan, "two")) == ("hello a", "hello b")
            )
        },
        seed=7,
        how=Chaos(seconds=4, nodes=False, peace_seconds=120),
    )

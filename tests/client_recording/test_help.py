"""The help of every command has the sections, flags, defaults and usage of kubectl v1.35's.

kubectl_v1.35_help.json is what its --help says of itself, by command; the prose is our own.
"""

import io
import json
import re
from pathlib import Path

import pytest

from sampan.cli.examples import EXAMPLES
from sampan.cli.main import main
from sampan.cli.session import Io

RECORDED = json.loads(Path(__file__).with_name("kubectl_v1.35_help.json").read_text())
_FLAG = re.compile(r"^    (?:-(\w), )?--([a-z][\w.-]*)=(.*):$", re.MULTILINE)
_CHILD = re.compile(r"^  ([a-z][\w-]*)  +\S", re.MULTILINE)
# Flags that are not there: docs/compatibility.md.
ABSENT = {("proxy", "append-server-path")}


def help_of(path):
    out = io.StringIO()
    environment = {"HOME": "/nonexistent", "PATH": ""}
    assert main([*path.split(), "--help"], io=Io(io.BytesIO(), out, out, environment)) == 0
    return out.getvalue()


def first(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1) if match else ""


def facts_of(path, text):
    listed = first(r"Available Commands:\n((?:.+\n)+)", text)
    return {
        "sections": re.findall(r"^([A-Z][\w ()]*):$", text, re.MULTILINE),
        "children": _CHILD.findall(listed if path else text.split("Usage:")[0]),
        "flags": [list(flag) for flag in _FLAG.findall(text)],
        "aliases": first(r"^Aliases:\n(.*)", text),
        "usage": first(r"^Usage:\n  (.*)", text),
        "pointers": [line for line in text.split("\n") if line.startswith('Use "')],
    }


@pytest.mark.slow
def test_every_command_has_what_kubectl_says_of_it():
    wrong = {}
    for path, recorded in RECORDED.items():
        expected = {
            **recorded,
            "flags": [flag for flag in recorded["flags"] if (path, flag[1]) not in ABSENT],
        }
        found = facts_of(path, help_of(path))
        for what, value in expected.items():
            if found[what] != value:
                wrong[path, what] = (value, found[what])
    assert wrong == {}


def test_examples_are_of_commands_that_there_are():
    assert set(EXAMPLES) <= set(RECORDED)

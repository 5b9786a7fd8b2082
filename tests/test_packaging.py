"""What people install sampan with: the image, the CI action, the formula, the release, offline."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sampan.cmd.flags.parser import parser_of_verbs

ROOT = Path(__file__).parent.parent
PACKAGING = ROOT / "packaging"
INSTRUCTIONS = {
    "FROM", "ARG", "ENV", "LABEL", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE",
    "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD",
}  # fmt: skip
SETUP = (ROOT / "setup.py").read_text()
ACTION = yaml.safe_load((PACKAGING / "setup-sampan" / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]


def instructions():
    """(name, the rest), of each line that goes on in the next one."""
    text = (PACKAGING / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def the_last(name):
    return [rest for instruction, rest in instructions() if instruction == name][-1]


def test_the_image_is_built_of_named_bases_and_runs_as_nobody_special():
    found = instructions()
    assert {name for name, _ in found} <= INSTRUCTIONS
    stages = {rest.split()[2] for name, rest in found if name == "FROM" and " AS " in rest}
    bases = [rest.split()[0] for name, rest in found if name == "FROM"]
    assert all(re.fullmatch(r"[a-z0-9.]+/[a-z/]+:\d[\w.-]+", base) for base in bases), bases
    assert set(re.findall(r"from=(\w+)", " ".join(rest for _, rest in found))) == stages
    assert int(the_last("USER")) > 0
    assert [name for name, _ in found][-2:] == ["ENTRYPOINT", "CMD"]


def test_what_the_image_runs_is_what_sampan_understands():
    assert yaml.safe_load(the_last("ENTRYPOINT")) == ["sampan"]
    given = parser_of_verbs().parse_args(yaml.safe_load(the_last("CMD")))
    assert str(given.port) == the_last("EXPOSE")
    assert Path(given.data_dir).is_relative_to(the_last("VOLUME"))
    health = yaml.safe_load(the_last("HEALTHCHECK").partition("CMD")[2])
    assert health[:2] == ["sampan", "get"]
    assert health[-1] == str(given.kubeconfig)


def test_nothing_that_was_made_here_goes_into_the_image():
    ignored = (ROOT / ".dockerignore").read_text().split()
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    assert {".git", *(made & {".venv", "build", "dist", "run", "sampan-data"})} <= set(ignored)


def test_the_action_uses_what_it_declares_and_nothing_else():
    assert ACTION["runs"]["using"] == "composite"
    text = (PACKAGING / "setup-sampan" / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    ids = {step["id"] for step in STEPS if "id" in step}
    assert set(re.findall(r"steps\.(\w+)\.outputs", text)) == ids
    for about in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert about["description"]
    for step in STEPS:
        assert step["shell"] == "bash"
        # What is put in from outside is a variable of the shell, never a part of its program.
        assert "${{" not in step["run"]
        done = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_action_starts_what_it_was_asked_for(tmp_path):
    """Its own program, with a `sampan` that says how it was called."""
    [step] = [one for one in STEPS if one.get("id") == "up"]
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "sampan"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/called\n')
    program.chmod(0o755)
    given = {
        "PLACE": tmp_path, "MINOR": "1.36", "NODES": "3", "OBJECTS": "my app",
        "RUNTIME": "simulated",
    }  # fmt: skip
    written = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV")}
    environment = {name: str(value) for name, value in {**given, **written}.items()}
    assert set(step["env"]) == set(given)
    subprocess.run(["bash", "-c", step["run"]], env={**os.environ, **environment}, check=True)
    asked = parser_of_verbs().parse_args((tmp_path / "called").read_text().splitlines())
    assert (asked.runtime, asked.nodes, asked.kubernetes_version) == ("simulated", 3, "1.36")
    assert [str(item) for item in asked.manifests_to_apply] == ["my app"]
    assert written["GITHUB_ENV"].read_text() == f"KUBECONFIG={tmp_path}/kubeconfig\n"
    assert written["GITHUB_OUTPUT"].read_text() == f"kubeconfig={tmp_path}/kubeconfig\n"


def test_the_formula_is_filled_in(tmp_path):
    release = runpy.run_path(str(ROOT / "tools" / "release"))
    archive = tmp_path / "sampan-1.2.3.tar.gz"
    archive.write_bytes(b"an archive")
    text = release["formula"](archive, "1.2.3", "https://example.org/sampan")
    assert 'homepage "https://example.org/sampan"' in text
    assert 'url "https://example.org/sampan/releases/download/v1.2.3/sampan-1.2.3.tar.gz"' in text
    assert f'sha256 "{release["digest"](archive)}"' in text
    assert not re.search(r"@[A-Z0-9]+@", text.partition("class")[2])
    opened = len(re.findall(r"^\s*(?:class|def|test do)\b", text, re.M))
    assert opened == len(re.findall(r"^\s*end$", text, re.M))


README = "![a](docs/a.png) [b](docs/b.md) [c](https://c.org) [d](#d)"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", README),
        (
            "https://x.org/s",
            "![a](https://x.org/s/raw/v1/docs/a.png) [b](https://x.org/s/blob/v1/docs/b.md)"
            " [c](https://c.org) [d](#d)",
        ),
    ],
)
def test_an_index_shows_what_the_readme_shows(url, expected):
    build = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    assert build["shown_elsewhere"](README, url, "v1") == expected
    assert ("project_urls" in build["addresses"](url)) == bool(url)


@pytest.mark.parametrize("path", re.findall(r'run_path\(str\(HERE / "([^"]+)"', SETUP))
def test_what_the_build_runs_needs_nothing_that_is_installed(path):
    """The build's own environment has no sampan, and setup.py runs before anything else."""
    run = f"import runpy; runpy.run_path({str(ROOT / path)!r})"
    subprocess.run([sys.executable, "-I", "-S", "-c", run], check=True)

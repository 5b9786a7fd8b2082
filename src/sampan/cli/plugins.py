"""Plugins: programs on PATH whose names begin with `kubectl-` (or `sampan-`).

Job: find the longest name that the words spell, and become that program.
"""

import os
import subprocess

from sampan.cli.session import Session


def prefixes(program: str) -> tuple[str, ...]:
    return ("kubectl",) if program == "kubectl" else (program, "kubectl")


def run(session: Session, words: list[str]) -> int | None:
    """The exit code of the plugin that the words name; None when there is none."""
    names = []
    for word in words:
        if word.startswith("-"):
            break
        names.append(word.replace("-", "_"))
    path = session.io.environment.get("PATH", "")
    while names:
        for prefix in prefixes(session.program):
            program = _find(path, f"{prefix}-{'-'.join(names)}")
            if program:
                return _ran(session, program, words[len(names) :])
        names.pop()
    return None


def verbs(program: str, path: str) -> list[str]:
    """What plugins add to the verbs: each the first word of a plugin's name."""
    found: dict[str, None] = {}
    for folder in filter(None, path.split(os.pathsep)):
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            prefix = next((one for one in prefixes(program) if name.startswith(f"{one}-")), None)
            if prefix is not None and os.access(os.path.join(folder, name), os.X_OK):
                word = name.removeprefix(f"{prefix}-").split("-")[0].replace("_", "-")
                found.setdefault(word)
    return list(found)


def _find(path: str, name: str) -> str:
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, name)
        # A folder that we may not look into has none for us.
        if folder and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return ""


def _ran(session: Session, program: str, words: list[str]) -> int:
    session.io.stdout.flush()
    environment = session.io.environment
    if session.found_kubeconfig:
        environment = {**environment, "KUBECONFIG": session.found_kubeconfig}
    try:
        session.io.stdout.fileno()
    except (OSError, AttributeError, ValueError):
        done = subprocess.run([program, *words], env=environment, capture_output=True, text=True)
        session.write(done.stdout)
        session.io.stderr.write(done.stderr)
        return done.returncode
    return subprocess.run([program, *words], env=environment).returncode

"""README.md, docs/testkit.md, docs/guide/: every command, pasted in order, prints what is shown."""

import shlex
import time
from contextlib import ExitStack

import pytest
import yaml

from tests.pages.page import (
    ELSEWHERE,
    FOREGROUND,
    Command,
    Step,
    is_reading,
    is_shown,
    pages,
    steps_of,
)
from tests.pages.place import ROOT, Place, place
from tests.pages.shell import Terminal
from tests.support.parts.machines import machines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.timeout(240),
]
PATIENCE_SECONDS = 60.0


@pytest.mark.parametrize("path", pages(ROOT), ids=lambda path: path.stem)
def test_what_a_page_says_happens(path):
    steps = [step for step in steps_of(path.read_text()) if not step.needs]
    count = 2 if any(ELSEWHERE in step.notes for step in steps) else 1
    with ExitStack() as undo:
        places = [
            undo.enter_context(place(machine, in_clone=path.name == "README.md"))
            for machine in undo.enter_context(machines(count))
        ]
        places[0].knows(places[-1])
        for step in steps:
            follow(step, places[1 if ELSEWHERE in step.notes else 0], undo)


def follow(step: Step, here: Place, undo: ExitStack) -> None:
    if step.file:
        path = here.directory / step.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text)
        for script in scripts_of(step):
            paste(Command(script, None, 0), here.ci_terminal)
    elif FOREGROUND in step.notes:
        [command] = step.commands
        stays = here.terminal.start(command.words)
        undo.callback(stays.interrupt)
        assert command.output is not None
        shown = [line for line in command.output if line.strip()]
        printed = stays.lines_until(lambda line: is_shown(shown[-1:], [line]))
        complaint = complaint_of(command, printed)
        assert not complaint, complaint
    else:
        for command in step.commands:
            paste(command, here.terminal)


def paste(command: Command, terminal: Terminal) -> None:
    """What only reads is asked again, as its reader would, until it shows what the page does."""
    deadline = time.monotonic() + (PATIENCE_SECONDS if is_reading(command) else 0.0)
    while True:
        printed, code = terminal.run(command.words)
        complaint = complaint_of(command, printed, code)
        if not complaint:
            return
        if time.monotonic() > deadline:
            pytest.fail(f"line {command.line}: {command.words}\n{complaint}")
        time.sleep(0.2)


def complaint_of(command: Command, printed: list[str], code: int = 0) -> str:
    text = "\n".join(printed)
    if (code != 0) != command.is_refused:
        return f"it ended with {code}:\n{text}"
    if command.output is None or is_shown(command.output, printed):
        return ""
    shown = "\n".join(command.output)
    return f"the page shows:\n{shown}\nit printed:\n{text}"


def scripts_of(step: Step) -> list[str]:
    """What a CI system would run of a file that tells it."""
    if step.file.startswith(".github/workflows/"):
        whole = yaml.safe_load(step.text)
        steps = [part for job in whole["jobs"].values() for part in job["steps"]]
        return [exports(whole["env"]), *(part["run"] for part in steps if "run" in part)]
    if step.file == ".gitlab-ci.yml":
        [job] = yaml.safe_load(step.text).values()
        return [exports(job["variables"]), *job["script"]]
    return []


def exports(variables: dict[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())

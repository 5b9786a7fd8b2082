"""`plugin list`: programs on PATH that are verbs, too.

Job: find them, and say what is wrong with some.
"""

import os
from pathlib import Path

from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    from sampan.cli import catalog

    found: list[str] = []
    warnings: list[str] = []
    prefix = f"{session.program}-"
    for folder in filter(None, session.io.environment.get("PATH", "").split(os.pathsep)):
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            text = (error.strerror or str(error)).lower()
            session.complain(
                f'Unable to read directory "{folder}" from your PATH: open {folder}: {text}. '
                "Skipping..."
            )
            continue
        found += [str(Path(folder) / name) for name in names if name.startswith(prefix)]
    if not found:
        raise CliError(f"unable to find any {session.program} plugins in your PATH")
    session.print("The following compatible plugins are available:\n")
    for path in found:
        name = os.path.basename(path)
        session.print(name if values["name-only"] else path)
        verb = name.removeprefix(prefix)
        if catalog.is_verb(verb):
            warnings.append(f'{name} overwrites existing command: "{session.program} {verb}"')
        if not os.access(path, os.X_OK):
            warnings.append(
                f"{path} identified as a {session.program} plugin, but it is not executable"
            )
    for warning in warnings:
        session.complain(f"  - warning: {warning}")
    if len(warnings) == 1:
        raise CliError("one plugin warning was found")
    if warnings:
        raise CliError(f"{len(warnings)} plugin warnings were found")


PLUGIN = Command(
    "plugin", "plugin [flags] [options]", "Provides utilities for interacting with plugins.",
    children=(
        Command("list", "plugin list [flags] [options]", "List all visible plugin executables on a user's PATH", run,
                (switch("name-only", "Only the names of the plugins, not their paths."),)),
    ),
)  # fmt: skip

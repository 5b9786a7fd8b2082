"""The files of a kustomization.

Job: find it in its folder; read what it names.
Invariant: no file outside of the folder is read, as kubectl has it, unless it is asked to: whoever
    is to be let in is a kustomization of its own.
"""

import os
from pathlib import Path

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize.shapes import KUSTOMIZATION, check_shape
from sampan.cli.objects import documents

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class OpenFolder(type(Path())):  # type: ignore[misc]  # of this system's kind
    """Whose kustomization may read files outside of it: LoadRestrictionsNone."""


def load(folder: Path) -> tuple[Obj, Path]:
    """What a kustomization says, and its file. Raises CliError."""
    found = [name for name in NAMES if (folder / name).is_file()]
    if not found:
        raise CliError(
            "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' "
            f"in directory '{folder}'"
        )
    if len(found) > 1:
        raise CliError(f"Found multiple kustomization files under: {folder}")
    path = folder / found[0]
    written = list(documents.documents(path.read_bytes(), str(path)))
    if not written:
        raise CliError("kustomization.yaml is empty")
    if not isinstance(written[0], dict):
        raise CliError(f"{path}: a kustomization is a mapping")
    check_shape(written[0], KUSTOMIZATION, "Kustomization")
    return written[0], path


def text_of(folder: Path, name: str) -> str:
    """Raises CliError."""
    place = place_of(folder, name)
    try:
        return place.read_text()
    except OSError as error:
        raise CliError(f"open {place}: {(error.strerror or str(error)).lower()}") from error


def place_of(folder: Path, name: str) -> Path:
    """Raises CliError where it is not there, or outside."""
    place = Path(os.path.normpath(folder / name))
    if not place.exists():
        raise CliError(
            f"evalsymlink failure on '{place}' : lstat {place}: no such file or directory"
        )
    real, root = place.resolve(), folder.resolve()
    is_open = isinstance(folder, OpenFolder)
    # A device or a pipe that a link leads to is no directory, either.
    if not place.is_dir() and not is_open and not real.is_relative_to(root):
        raise CliError(f"security; file '{real}' is not in or below '{root}'")
    return place

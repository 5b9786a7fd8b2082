"""How objects move on by themselves: KWOK's Stages, in files that `--stages` names.

Job: files → the controller that plays them, or one sentence with everything that is wrong.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.api.configuration import BadConfiguration
from sampan.cmd.errors import CannotStart, reason_of

if TYPE_CHECKING:
    from sampan.controllers.controller import Controller

FLAG = "--stages"
HELP = (
    "Stages of KWOK, a file or a directory of them: how objects of any kind move on by themselves, "
    "and Nodes with the annotation kwok.x-k8s.io/node=fake with their Pods (docs/simulated.md); "
    "may be given again"
)
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def stage_controllers(paths: Sequence[str], flag: str = FLAG) -> "tuple[Controller, ...]":
    """One that plays all of them; none without a file. Raises CannotStart."""
    if not paths:
        return ()
    # Templates, queries, CEL, YAML: for those who have Stages.
    from sampan.controllers.stages.stage_controller import stage_controller
    from sampan.controllers.stages.stage_file import stages_of

    try:
        return (stage_controller(stages_of(_documents(paths, flag))),)
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{flag}:{problems}") from error


def _documents(paths: Sequence[str], flag: str) -> Iterator[object]:
    import yaml

    for file in (file for path in paths for file in _files(Path(path))):
        try:
            documents = list(yaml.safe_load_all(file.read_text()))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise CannotStart(f"{flag} {file}: {reason_of(error)}") from error
        found = [each for each in documents if each is not None]
        if not found:
            raise CannotStart(f"{flag} {file}: there is no Stage in it")
        yield from found


def _files(path: Path) -> list[Path]:
    """In a directory those of YAML and JSON, by name, and what a kustomization is not asked for."""
    if not path.is_dir():
        return [path]
    endings = (".json", ".yaml", ".yml")
    return sorted(
        each for each in path.iterdir()
        if each.suffix in endings and each.name not in _KUSTOMIZATIONS
    )  # fmt: skip

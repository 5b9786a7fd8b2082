"""Where a cluster's data is: by its name, by a directory that was given, or where it always was.

Job: --data-dir, --name and the environment → one directory; which clusters there are.
Invariant: what was given wins; an existing ./sampan-data wins over the default of the state
    directory; a name never leads out of that.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from sampan.api.rules.names import dns_label
from sampan.cmd.errors import CannotStart

HERE = "sampan-data"
DEFAULT_NAME = "default"
DATA_DIR, NAME = "SAMPAN_DATA_DIR", "SAMPAN_NAME"  # --data-dir and --name, in the environment
# A context is called after it, and a socket's path should stay short.
LONGEST_NAME = 40


def state_directory(environment: Mapping[str, str]) -> Path:
    """Below it each named cluster has a directory (XDG: what is kept, but is no configuration)."""
    given = environment.get("XDG_STATE_HOME", "")
    # As the XDG specification has it: a relative path is ignored.
    base = Path(given) if os.path.isabs(given) else _home(environment) / ".local" / "state"
    return base / "sampan"


def data_directory(environment: Mapping[str, str]) -> Path:
    """What the clusters of a user have in common, and could fetch again."""
    given = environment.get("XDG_DATA_HOME", "")
    base = Path(given) if os.path.isabs(given) else _home(environment) / ".local" / "share"
    return base / "sampan"


def _home(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME", "")
    return Path(home) if os.path.isabs(home) else Path.home()


def data_path(data_dir: str, name: str, environment: Mapping[str, str], here: Path) -> Path:
    """The directory of the cluster that is meant; it need not be there."""
    if data_dir and name:
        raise CannotStart(f"--data-dir {data_dir} and --name {name} both say where: give one")
    if data_dir:
        return here / data_dir
    if name:
        check_name(name)
        return state_directory(environment) / name
    if os.path.isdir(here / HERE):
        return here / HERE
    return state_directory(environment) / DEFAULT_NAME


def check_name(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise CannotStart(
            f"--name {name[:20]}… is too long: {len(name)} letters, {LONGEST_NAME} at most"
        )
    complaints = dns_label(name)
    if complaints:
        raise CannotStart(f"--name {name!r} is no cluster's name: {complaints[0]}")


def name_of_directory(root: Path, environment: Mapping[str, str]) -> str:
    """What `--name` would say for it; empty where it is no named cluster's."""
    return root.name if root.parent == state_directory(environment) else ""


def known_clusters(environment: Mapping[str, str], here: Path) -> list[tuple[str, Path]]:
    """Name and directory of each; the one of this directory has no name."""
    found: list[tuple[str, Path]] = []
    if os.path.exists(here / HERE / "format"):
        found.append(("", here / HERE))
    try:
        named = sorted(state_directory(environment).iterdir())
    except OSError:
        named = []
    return found + [(path.name, path) for path in named if os.path.exists(path / "format")]

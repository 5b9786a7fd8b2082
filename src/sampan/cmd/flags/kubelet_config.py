"""The node agent's configuration, as `--kubelet-config` and `--kubelet-config-dir` name it.

Job: file and drop-ins → one document; document → settings, or one sentence with everything that is
    wrong with it.
"""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.api.configuration import BadConfiguration
from sampan.api.objects import Obj
from sampan.cmd.errors import CannotStart, reason_of
from sampan.cmd.settings import NodeChoices

if TYPE_CHECKING:
    from sampan.kubelet.settings import KubeletSettings

FLAG, DIRECTORY_FLAG = "--kubelet-config", "--kubelet-config-dir"
DROP_IN = ".conf"


def read_config(node: NodeChoices) -> Obj:
    """As upstream: over the file, those of the directory that end in .conf, in the order of their
    names, each as a JSON merge patch. Empty where there is neither. Raises CannotStart."""
    if not node.config and not node.config_dir:
        return {}
    # Most nodes have no file: its reader is not loaded for them.
    from sampan.api.patch.merge_patch import merge_patch

    merged: Obj = _document(node.config, FLAG) if node.config else {}
    for path in _drop_ins(node.config_dir):
        merged = merge_patch(merged, _document(path, DIRECTORY_FLAG))
    return merged


def _drop_ins(directory: str) -> list[str]:
    """Of directories in it, too."""
    if not directory:
        return []
    try:
        if not Path(directory).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        return sorted(str(path) for path in Path(directory).rglob(f"*{DROP_IN}") if path.is_file())
    except OSError as error:
        raise CannotStart(f"{DIRECTORY_FLAG} {directory}: {reason_of(error)}") from error


def _document(path: str, flag: str) -> Obj:
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotStart(f"{flag} {path}: {reason_of(error)}") from error
    if not isinstance(found, dict):
        raise CannotStart(f"{flag} {path}:\n  the file: expected an object")
    return found


def with_config(settings: "KubeletSettings", document: Obj, where: str) -> "KubeletSettings":
    """`where` it was read, for the message. Raises CannotStart; without a document: the settings
    as they are."""
    if not document:
        return settings
    from sampan.kubelet.configuration import with_configuration

    try:
        return with_configuration(settings, document)
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{FLAG} {where}:{problems}") from error

"""The node agent's configuration file, as `--kubelet-config` names it.

Job: file → settings, or one sentence with everything that is wrong with it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sampan.api.configuration import BadConfiguration
from sampan.cmd.errors import CannotStart, reason_of

if TYPE_CHECKING:
    from sampan.kubelet.settings import KubeletSettings

FLAG = "--kubelet-config"


def with_config(settings: "KubeletSettings", path: str) -> "KubeletSettings":
    """Raises CannotStart; no path: the settings as they are."""
    if not path:
        return settings
    # Most nodes have no file: its reader is not loaded for them.
    import yaml

    from sampan.kubelet.configuration import with_configuration

    try:
        return with_configuration(settings, yaml.safe_load(Path(path).read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotStart(f"{FLAG} {path}: {reason_of(error)}") from error
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{FLAG} {path}:{problems}") from error

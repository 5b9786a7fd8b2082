"""How the programs that stay are loaded (docs/decisions/0031-our-modules-in-one-file.md).

Job: take sampan's modules from the one file that has them; see to it that the next start can.
"""

import os
import sys

import sampan
from sampan.core.compiled_modules import CompiledModules

_modules = CompiledModules(
    "sampan", os.path.dirname(os.path.abspath(sampan.__file__)), os.path.dirname(os.__file__)
)


def load_from_one_file() -> None:
    """From now on, until `all_is_loaded`."""
    _modules.open()  # where there is none yet, it sees what it is to have
    sys.meta_path.insert(0, _modules)


def all_is_loaded() -> None:
    """What a start needs. Takes a moment where something was not in the file."""
    _modules.write_if_incomplete()
    _modules.let_go()
    if _modules in sys.meta_path:
        sys.meta_path.remove(_modules)

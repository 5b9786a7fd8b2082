"""Where the project is: for programs that tests start, which must find the same sampan."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
PYTHONPATH = os.pathsep.join((str(SOURCES), str(ROOT)))  # `sampan`, and `tests.support`

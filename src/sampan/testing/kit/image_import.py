"""Images for the real node of a test cluster, without a registry.

Job: what `sampan image import` does, by the same command.
"""

import os
import subprocess
import sys
from pathlib import Path

import sampan


def import_image(data_dir: Path, archive: Path) -> list[str]:
    """Raises ValueError with what the command says."""
    done = subprocess.run(
        [sys.executable, "-m", "sampan", "image", "import", str(archive.absolute()),
         "--data-dir", str(data_dir)],
        env={**os.environ, "PYTHONPATH": str(Path(sampan.__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr.strip().removeprefix("sampan: "))
    lines = [line.split() for line in done.stdout.splitlines()]
    return [words[1] for words in lines if words[:1] == ["imported"]]

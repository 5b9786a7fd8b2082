"""Facts that are data: the JSON files of src/sampan/data/.

Job: read one by its name. They are read as they are, in every build and tree.
"""

from pathlib import Path
from typing import Any

import orjson

FOLDER = Path(__file__).parents[2] / "data"


def packaged_data(name: str) -> Any:
    """Fresh each time: the caller's to change."""
    return orjson.loads((FOLDER / f"{name}.json").read_bytes())

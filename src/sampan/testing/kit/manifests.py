"""What a test gives to `apply`.

Job: YAML, a file, a directory, an object or several → objects.
"""

from collections.abc import Iterable
from pathlib import Path

import yaml

from sampan.api.objects import Obj

Manifest = str | Path | Obj | Iterable[Obj]
_SUFFIXES = (".yaml", ".yml", ".json")


def documents(manifest: Manifest) -> list[Obj]:
    """The objects of a manifest, those of lists and directories included."""
    if isinstance(manifest, dict):
        items = manifest.get("items") if str(manifest.get("kind", "")).endswith("List") else None
        return [manifest] if items is None else [*items]
    if isinstance(manifest, Path):
        if manifest.is_dir():
            files = sorted(path for path in manifest.iterdir() if path.suffix in _SUFFIXES)
            return [obj for file in files for obj in documents(file)]
        manifest = manifest.read_text()
    found = yaml.safe_load_all(manifest) if isinstance(manifest, str) else manifest
    return [obj for document in found if document for obj in documents(document)]

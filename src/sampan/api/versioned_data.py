"""Facts that are data, as they are in the version of Kubernetes that this process is of.

Job: one of src/sampan/data/*.json, with what data/versions/1.36.json says is different there. Pure.
Invariant: the files of versions that nobody asks for are not read.
"""

from typing import Any

from sampan.api import features
from sampan.core.files.packaged_data import packaged_data
from sampan.version import DEFAULT_MINOR


def versioned_data(name: str) -> Any:
    """Fresh each time: the caller's to change."""
    minor = features.release().minor
    found = packaged_data(name)
    if minor == DEFAULT_MINOR:
        return found
    return merged(found, packaged_data(f"versions/{minor}").get(name, {}))


def merged(base: Any, changes: Any) -> Any:
    """As a JSON merge patch: null is what is not there."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    kept = {key: value for key, value in base.items() if key not in changes}
    for key, value in changes.items():
        if value is not None:
            kept[key] = merged(base.get(key, {}), value)
    return kept

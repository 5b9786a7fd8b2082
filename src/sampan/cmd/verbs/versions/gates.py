"""`sampan gates`: the feature gates of a version, what they are set to, and which sampan has.

Job: the table of gates as text or JSON.
"""

import json
import sys
from typing import Any

from sampan.api import features
from sampan.api.feature_gates import Gate
from sampan.cmd.cluster.data_dir import DataDirError, find_data_dir
from sampan.cmd.cluster.releases import kept_minor, use_release
from sampan.cmd.cluster.table import table
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ReleaseChoices

_HERE = {"both": "yes", "on": "only true", "off": "only false", "same": "yes (nothing to see)"}
COLUMNS = ("name", "stage", "since", "default", "value", "sampan")


def run(choices: ReleaseChoices, data_dir: str, *, as_json: bool) -> int:
    """Of the version that is asked for, else of the cluster that is there."""
    try:
        use_release(choices, "" if choices.kubernetes_version else _kept(data_dir))
    except CannotStart as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    rows = [row(name, gate) for name, gate in features.known().items()]
    if as_json:
        print(json.dumps(rows, indent=2))
        return 0
    cells = [[_text(row[column]) for column in COLUMNS] for row in rows]
    print("\n".join(table([column.upper() for column in COLUMNS], cells)))
    return 0


def row(name: str, gate: Gate) -> dict[str, Any]:
    stage = gate.stage
    return {
        "name": name,
        "stage": "PreAlpha" if stage is None else stage.name,
        "since": "" if stage is None else stage.since,
        "default": gate.default,
        "locked": stage is not None and stage.locked,
        "value": features.enabled(name),
        "sampan": _HERE[gate.here],
    }


def _kept(data_dir: str) -> str:
    try:
        return kept_minor(find_data_dir(data_dir))
    except DataDirError:
        return ""


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Where figures go: one row per run in docs/bench.csv."""

import csv
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
CSV = ROOT / "docs" / "bench.csv"


def append(row: dict[str, float]) -> None:
    """Columns are added at the end as they come; old rows stay as they are."""
    when = f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"  # noqa: TID251  # a figure's date
    new: dict[str, object] = {"commit": _commit(), "when": when, **row}
    rows: list[dict[str, object]] = []
    if CSV.exists():
        with CSV.open(newline="") as file:
            rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(name for one in (*rows, new) for name in one))
    with CSV.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for one in (*rows, new):
            writer.writerow({k: f"{v:.3f}" if isinstance(v, float) else v for k, v in one.items()})


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def print_row(row: dict[str, float]) -> None:
    for name, value in row.items():
        print(f"{name:<36} {value:10.2f}")

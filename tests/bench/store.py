"""`make bench-store`: a million updates of a thousand objects in SQLite: rate, and the file's size.

Job: run, print, append a row to docs/bench.csv.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.bench.record import append
from tests.support.generators.endless_updates import Load, bound_bytes, endless_updates

MIB = 1024 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="a million updates of a thousand objects")
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--no-csv", action="store_true", help="print only")
    given = parser.parse_args()
    load = Load(given.updates)
    with tempfile.TemporaryDirectory(prefix="sampan-bench-") as directory:
        found = asyncio.run(endless_updates(Path(directory) / "store.db", load))
    row = {
        "store updates/s": round(found.rate),
        "store largest MiB": round(found.largest_bytes / MIB, 1),
        "store bound MiB": round(bound_bytes(load) / MIB, 1),
        "store closed MiB": round(found.last_bytes / MIB, 1),
    }
    for name, figure in row.items():
        print(f"{name:20} {figure:>12,}")
    if not given.no_csv:
        append(row)
    return 0 if found.largest_bytes < bound_bytes(load) else 1


if __name__ == "__main__":
    sys.exit(main())

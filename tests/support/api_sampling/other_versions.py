"""What originals of other versions answer to the recorded steps, where it is something else.

`python -m tests.support.api_sampling.other_versions --kubeconfig FILE --out FILE.jsonl.gz
RECORDING.jsonl.gz …`

Job: send the steps of recordings of v1.35 to an original of another version, and write down only
    the answers that differ, each with its unit and place in it.
"""

import argparse
import asyncio
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sampan.api.objects import Obj
from tests.support.api_sampling.record import record_unit
from tests.support.api_sampling.replay import recorded_answer, recordings
from tests.support.api_sampling.servers import server_at

Units = dict[str, list[Obj]]
_ANSWER = ("code", "body", "warnings", "headers")


def of_version(units: Mapping[str, Sequence[Obj]], path: Path) -> Units:
    """The recordings as another version answered them."""
    found = {unit: list(records) for unit, records in units.items()}
    for unit, changes in recordings(path).items():
        for change in changes:
            if unit in found:
                known = found[unit][change["at"]]
                found[unit][change["at"]] = {
                    **{key: value for key, value in known.items() if key not in _ANSWER},
                    **{key: change[key] for key in _ANSWER if key in change},
                }
    return found


def _changes(known: Sequence[Obj], made: Sequence[Obj]) -> Iterator[Obj]:
    for at, (before, after) in enumerate(zip(known, made, strict=True)):
        if recorded_answer(before) != recorded_answer(after):
            answer = {key: after[key] for key in _ANSWER if key in after}
            yield {"unit": after["unit"], "at": at, "step": after["step"]["name"], **answer}


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("recordings", nargs="+", type=Path)
    options = parser.parse_args()
    lines: list[str] = []
    async with server_at(options.kubeconfig) as server:
        for path in options.recordings:
            for unit, known in recordings(path).items():
                made = await record_unit(server, unit, [record["step"] for record in known])
                found = [json.dumps(change) for change in _changes(known, made)]
                print(f"{unit}: {len(found)} of {len(known)}", file=sys.stderr)
                lines += found
    options.out.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    asyncio.run(_main())

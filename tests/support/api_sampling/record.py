"""Records what an original answers.

`python -m tests.support.api_sampling.record --kubeconfig FILE --steps FILE --out FILE.jsonl.gz
[--only REGEX]`

Job: send the steps of FILE (JSON lines of `unit` and `step`; a recording is one, too) to the
    server, and write down what it answers. Units with `--only` replace those of their name.
Invariant: the steps are written down with the answers, so that a recording can be made again.
"""

import argparse
import asyncio
import gzip
import json
import re
import sys
from pathlib import Path

from sampan.api.objects import Obj
from tests.support.api_sampling.exchange import Exchange
from tests.support.api_sampling.servers import Server, server_at

SETTLE_SECONDS = 2.0  # after a write of a definition: an original takes its time


def steps_in(path: Path) -> dict[str, list[Obj]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    units: dict[str, list[Obj]] = {}
    for line in text.splitlines():
        record = json.loads(line)
        units.setdefault(record["unit"], []).append(record)
    return units


async def record_unit(server: Server, unit: str, steps: list[Obj]) -> list[Obj]:
    exchange, found = Exchange(server), []
    for step in steps:
        if step.get("pause"):
            await asyncio.sleep(step["pause"])
        code, body, warnings, *shown = await exchange.answer(step)
        if step["method"] != "GET" and "customresourcedefinitions" in step["path"]:
            await asyncio.sleep(SETTLE_SECONDS)
        quoted = [f'299 - "{text}"' for text in warnings]
        made = {"unit": unit, "step": step, "code": code, "body": body, "warnings": quoted}
        found.append({**made, "headers": shown[0]} if shown else made)
    return found


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--steps", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    units = steps_in(options.steps)
    known = steps_in(options.out) if options.out.exists() else {}
    async with server_at(options.kubeconfig) as server:
        for unit, records in units.items():
            if not re.search(options.only, unit):
                continue
            known[unit] = await record_unit(server, unit, [record["step"] for record in records])
            print(f"{unit}: {len(known[unit])}", file=sys.stderr)
    lines = [json.dumps(record) for records in known.values() for record in records]
    options.out.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    asyncio.run(_main())

"""Answers that were recorded at an original, asked for again.

Job: send the steps of a unit in order, and say which answers differ.
"""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from tests.support.api_sampling.exchange import Exchange, texts_of_warnings
from tests.support.api_sampling.masks import (
    comparable_answer,
    mask_allocated,
    mask_times,
    without_random,
)
from tests.support.api_sampling.servers import Server


@dataclass(frozen=True, slots=True)
class Difference:
    unit: str
    step: str
    recorded: str
    answered: str

    def __str__(self) -> str:
        return f"{self.unit}/{self.step}\n  a {self.recorded}\n  b {self.answered}"


def recordings(path: Path) -> dict[str, list[Obj]]:
    """By unit, each in its order."""
    units: dict[str, list[Obj]] = {}
    with gzip.open(path, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            units.setdefault(record["unit"], []).append(record)
    return units


async def differences(server: Server, records: list[Obj]) -> list[Difference]:
    exchange, found = Exchange(server), []
    for record in records:
        different = await _different(exchange, record)
        if different is not None:
            found.append(different)
    return found


async def _different(exchange: Exchange, record: Obj) -> Difference | None:
    step = record["step"]
    if step.get("pause"):
        await asyncio.sleep(step["pause"])
    recorded = recorded_answer(record)
    answered = comparable_answer(await exchange.answer(step, recorded))
    if step["method"] != "GET" and "customresourcedefinitions" in step["path"]:
        await asyncio.sleep(1)  # as the recorder: until the write has taken effect
    if record.get("unstable"):
        recorded, answered = without_random(recorded), without_random(answered)
    if answered == recorded:
        return None
    texts = (json.dumps(side, sort_keys=True) for side in (recorded, answered))
    return Difference(record["unit"], step["name"], *texts)


def recorded_answer(record: Obj) -> list[Any]:
    """Masked once more: by what is masked today."""
    step = record["step"]
    body = mask_times(record["body"], keep_entries=True)
    body = mask_allocated(body, json.dumps(step.get("body")))
    shown = [record["headers"]] if "show" in step else []
    warnings = texts_of_warnings(record["warnings"])
    return comparable_answer([record["code"], body, warnings, *shown])

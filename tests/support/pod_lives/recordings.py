"""Lives on record: what an original kubelet showed of a pod each time, and what only sometimes.

Job: put several runs of the same scenarios together; say where a life is not that on record.
"""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from sampan.api.objects import Obj
from tests.support.pod_lives.leading import Life
from tests.support.pod_lives.looks import Look, words

Run = dict[str, Obj]


def read(path: Path) -> dict[str, Obj]:
    """By name: scenario, and what of it is on record."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return {record["name"]: record for record in map(json.loads, lines)}


def write(path: Path, records: Iterable[Obj]) -> None:
    text = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def seen_in_a_run(life: Life) -> Obj:
    return {"refused": life.refused, "looks": life.looks, "events": life.events}


def together(name: str, scenario: Obj, runs: Sequence[Obj]) -> Obj:
    """What every run showed, in this order, must be shown; in other words than theirs, nothing."""
    looks = [one for one in runs[0]["looks"] if not _skips_a_step(one)]
    for run in runs[1:]:
        looks = common(looks, run["looks"])
    events = [_texts(run["events"]) for run in runs]
    always = set.intersection(*events)
    spoken = set.union(*(words(run["looks"]) for run in runs))
    return {
        "name": name,
        **scenario,
        "refused": runs[0]["refused"],
        "looks": looks,
        "words": sorted(spoken - words(looks)),
        "events": [json.loads(text) for text in sorted(always)],
        "other_events": [json.loads(text) for text in sorted(set.union(*events) - always)],
    }


def _skips_a_step(seen: Look) -> bool:
    """A container began and ended between two of the original's looks around: at another pace the
    pod is told to run before."""
    mains = seen.get("containerStatuses", ())
    begun = [one for one in mains if "terminated" in one["state"] or one.get("lastState")]
    return seen.get("phase") == "Pending" and bool(begun)


def common(one: Sequence[Look], other: Sequence[Look]) -> list[Look]:
    """The longest that both show, in this order."""
    best: list[list[list[Look]]] = [
        [[] for _ in range(len(other) + 1)] for _ in range(len(one) + 1)
    ]
    for i, mine in enumerate(one):
        for j, theirs in enumerate(other):
            if mine == theirs:
                best[i + 1][j + 1] = [*best[i][j], mine]
            else:
                best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], key=len)
    return best[-1][-1]


# What lasts less than the original's look around (a second) may be told here, and not there.
BRIEF = frozenset(
    {
        "MODIFIED Running ", "Ready True ", "ContainersReady True ", "Initialized True ",
        "PodReadyToStartContainers True ",
    }
)  # fmt: skip


def is_over(life: Life) -> bool:
    record = life.scenario
    return not missing(record["looks"], life.looks) and not _lacking(record, life)


def differences(life: Life) -> list[Look | str]:
    """How it is not as on record; empty: it is."""
    record = life.scenario
    spoken = set(record["words"]) | words(record["looks"])
    events = _texts(record["events"]) | _texts(record["other_events"])
    refused = [life.refused] if life.refused != record["refused"] else []
    said = {word for word in words(life.looks) if not word.endswith(" state running  ")}
    strange = sorted(said - spoken - BRIEF)
    told = sorted(_texts(life.events) - events)
    return [
        *refused,
        *missing(record["looks"], life.looks),
        *strange,
        *_lacking(record, life),
        *told,
    ]


def missing(recorded: Sequence[Look], seen: Sequence[Look]) -> list[Look]:
    """What is on record and was not seen, in this order."""
    at, lacking = 0, []
    for status in recorded:
        for later in range(at, len(seen)):
            if seen[later] == status:
                at = later + 1
                break
        else:
            lacking.append(status)
    return lacking


def _lacking(record: Obj, life: Life) -> list[str]:
    return sorted(_texts(record["events"]) - _texts(life.events))


def _texts(events: Sequence[Look]) -> set[str]:
    """Which of two events comes first within a second nobody remembers."""
    return {json.dumps(event, sort_keys=True) for event in events}

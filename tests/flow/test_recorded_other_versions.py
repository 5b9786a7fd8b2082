"""Requests and patches that another version answers otherwise than v1.35, beside its original.

recorded/steps_v1.36.jsonl.gz and others: by `python -m tests.support.api_sampling.other_versions`,
from the steps of answers, patches and custom_resources.jsonl.gz; only what differs.
"""

from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.api_sampling.other_versions import of_version
from tests.support.api_sampling.replay import differences, recordings
from tests.support.api_sampling.servers import InProcess, settings
from tests.support.generators.api_requests import api_server

RECORDED = Path(__file__).parent / "recorded"
BASES = ("answers", "patches", "custom_resources")
FILES = {minor: RECORDED / f"steps_v{minor}.jsonl.gz" for minor in ("1.36", "1.37")}
GATED = "features that are not here: volume limits, parts of devices"
PLACES = "an error is told at another place"
YAML = "what is wrong with a text of YAML is told by another reader"
KEPT: dict[str, dict[str, dict[str, str]]] = {
    "1.36": {
        "sampled": {
            **dict.fromkeys(("501023-0", "600940-0"), GATED),
            **dict.fromkeys(("500596-3", "600742-2"), PLACES),
        },
    },
    "1.37": {
        "sampled": {
            **dict.fromkeys(
                (
                    "500087-2", "500840-3", "501023-0", "501113-0",
                    "600361-0", "600940-0",
                ),
                GATED,
            ),
            **dict.fromkeys(("500596-3", "600675-3", "600742-2"), PLACES),
        },
        "patch-media": dict.fromkeys(("apply-6", "apply-6-strict"), YAML),
        "apply": {"yaml-bad": YAML},
        "creation": {"table-of-crd": "columns are not described"},
        "bad-extensions": {"default-float-for-int": "a number that is none is told once"},
    },
}  # fmt: skip


def base_units():
    return {
        unit: records
        for name in BASES
        for unit, records in recordings(RECORDED / f"{name}.jsonl.gz").items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("minor", FILES)
def test_what_a_version_answers_otherwise_is_what_its_original_answers(minor):
    """[A4] [V1] whole units, of which the changed answers are looked at"""
    changed = {
        unit: {one["step"] for one in found} for unit, found in recordings(FILES[minor]).items()
    }
    units = of_version(base_units(), FILES[minor])

    async def replayed(records):
        async with api_server(Schema.load(), settings=settings()) as api:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crdgold"}}
            await api.post("/api/v1/namespaces", namespace)
            return await differences(InProcess(api.server), records)

    wrong = {}
    with features.used(Release(minor)):
        for unit, steps in changed.items():
            found = virtual_time.run(replayed(units[unit]))
            wrong |= {(unit, one.step): str(one) for one in found if one.step in steps}
    kept = {(unit, step) for unit, steps in KEPT[minor].items() for step in steps}
    assert not wrong.keys() - kept, "\n".join(wrong[key] for key in sorted(wrong.keys() - kept))
    assert kept <= wrong.keys(), "a kept difference is gone"

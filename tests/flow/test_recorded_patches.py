"""Patches and applies, request by request, beside the recorded answers of an original v1.35.

JSON, merge and strategic merge patches, with what its libraries make of missing members, nulls,
numbers and odd bodies; PUTs and patches that do not say which object they are; server-side apply
with nulls and empties in every kind of list, map and atomic, of built-in and custom kinds.
"""

from pathlib import Path

import pytest

from sampan.api.schema.published import Schema
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.api_sampling.replay import differences, recordings
from tests.support.api_sampling.servers import InProcess
from tests.support.generators.api_requests import api_server

pytestmark = pytest.mark.kubernetes("1.35")  # which was asked

RECORDED = Path(__file__).parent / "recorded"
UNITS = {
    **recordings(RECORDED / "patches.jsonl.gz"),
    **recordings(RECORDED / "applies.jsonl.gz"),
}
PANIC = "the original breaks off the connection"
COPIED_NULL = "the original tells a copied null from one that was added"
RAW = "the original reads what the patch has made once more, with its duplicate fields"
FLOAT = "2.0 and 2 are not the same in the original's memory, and are when it has stored them"
EMPTY = "empty and missing are not the same in the original's memory, and are when it stored them"
READ_FIRST = "the body is read before the object is looked for"
ODD_VERSION = "the original reads it as another version of the group"
EMBEDDED = "null in an embedded object's own fields"
NOT_TWICE = "of an address that is none it is not said too that it must not change"
KEPT = {
    "patch-test": dict.fromkeys(("test-64", "test-65", "test-80", "test-82", "test-84"), PANIC),
    "patch-bodies": {
        "body-37-warn": RAW,
        "body-37-strict": RAW,
        **dict.fromkeys(("body-55-warn", "body-57-warn", "body-57-ignore"), PANIC),
    },
    "patch-sequences": {
        "sequence-9": COPIED_NULL,
        "sequence-10": COPIED_NULL,
        "sequence-55": FLOAT,
    },
    "patch-media": dict.fromkeys(("absent-merge-bad", "absent-json-bad"), READ_FIRST),
    "merge-custom": {"merge-78": ODD_VERSION},
    "merge-configmap": {"merge-78": ODD_VERSION},
    "apply-custom-full": dict.fromkeys(("own-e-6", "own-e-7"), EMBEDDED),
    "apply-custom-fresh": dict.fromkeys(("new-e-6", "add-e-6", "new-e-7", "add-e-7"), EMBEDDED),
    "apply-service": dict.fromkeys(("own-14-2", "own-15-0", "force-15-0", "own-15-1"), NOT_TWICE),
    "apply-webhook": dict.fromkeys(
        ("own-0-0", "own-0-1", "own-8-0", "force-8-0", "own-8-1", "own-29-1"), EMPTY
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_recorded_unit_is_answered_as_the_original_does(unit):
    async def replayed():
        settings = ApiServerSettings(client_ca_pem=b"PEM")
        async with api_server(Schema.load(), settings=settings) as api:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crdgold"}}
            await api.post("/api/v1/namespaces", namespace)
            return await differences(InProcess(api.server), UNITS[unit])

    found = virtual_time.run(replayed())
    kept = KEPT.get(unit, {})
    wrong = [one for one in found if one.step not in kept]
    assert not wrong, "\n".join(str(one) for one in wrong)
    assert {one.step for one in found} == set(kept), "a kept difference is gone"

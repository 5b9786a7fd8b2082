"""Drawn stories of one object each, beside the recorded answers of an original v1.35.8.

They are those in which an earlier sampan differed (tests/support/api_sampling/compare.py found
them): validation, decoding, ownership, defaults of all kinds. Made again by
`python -m tests.support.api_sampling.record --steps tests/flow/recorded/samples.jsonl.gz …` at an
original with the two namespaces below, and without its controllers.
"""

from pathlib import Path

import pytest

from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.api_sampling.replay import differences, recordings
from tests.support.api_sampling.servers import InProcess, settings
from tests.support.api_sampling.stories import CHARGED, NAMESPACE
from tests.support.generators.api_requests import api_server

pytestmark = pytest.mark.kubernetes("1.35")  # which was asked

UNITS = recordings(Path(__file__).parent / "recorded" / "samples.jsonl.gz")


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_drawn_stories_are_answered_as_the_original_does(unit):
    """[A4] [A7]"""

    async def replayed():
        async with api_server(Schema.load(), settings=settings()) as api:
            for name in (NAMESPACE, CHARGED):
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await api.post("/api/v1/namespaces", body)
            return await differences(InProcess(api.server), UNITS[unit])

    found = virtual_time.run(replayed())
    assert not found, "\n".join(str(one) for one in found)

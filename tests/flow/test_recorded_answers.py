"""Single requests and short sequences of them, beside the recorded answers of an original v1.35.

Options in queries and bodies, continue tokens, selectors, who may what, reviews, tokens, evictions,
bindings, namespaces on their way out; and drawn creates and changes of all kinds. Made again by
`python -m tests.support.api_sampling.record --steps tests/flow/recorded/answers.jsonl.gz …`.
"""

from pathlib import Path

import pytest

from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.api_sampling.replay import differences, recordings
from tests.support.api_sampling.servers import InProcess, settings
from tests.support.generators.api_requests import api_server

pytestmark = pytest.mark.kubernetes("1.35")  # which was asked

UNITS = recordings(Path(__file__).parent / "recorded" / "answers.jsonl.gz")
SPACES, ONE = "/api/v1/namespaces", "?fieldSelector=metadata.name%3Dkube-public"
META = "g=meta.k8s.io;v=v1"
KEPT: dict[str, dict[str, str]] = {
    "accept": {
        **{
            f"{path} {accept}": "the first namespaces are nobody's"
            for path in (f"{SPACES}/kube-public", f"{SPACES}{ONE}")
            for accept in (
                "application/yaml",
                "application/json;q=0.1,application/yaml",
                "application/yaml;q=0.5,application/json;q=0.4",
                f"application/yaml;as=Table;{META}",
            )
        },
        f"{SPACES}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dnope "
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1": "no list",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_recorded_unit_is_answered_as_the_original_does(unit):
    async def replayed():
        async with api_server(Schema.load(), settings=settings()) as api:
            return await differences(InProcess(api.server), UNITS[unit])

    found = virtual_time.run(replayed())
    kept = KEPT.get(unit, {})
    wrong = [one for one in found if one.step not in kept]
    assert not wrong, "\n".join(str(one) for one in wrong)
    assert {one.step for one in found} == set(kept), "a kept difference is gone"

"""Custom resources, request by request, beside the recorded answers of an original v1.35.

Kept differences are listed with their reason; docs/compatibility.md says the same to users.
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

UNITS = recordings(Path(__file__).parent / "recorded" / "custom_resources.jsonl.gz")
SCALE_APPLY = "an apply of a Scale works here; the original fails with an error of its own making"
NO_KIND = "the original names a line of its own source"
KEPT = {
    "scale": {
        "put-wrong-kind": NO_KIND,
        "put-wrong-version": NO_KIND,
        "apply": SCALE_APPLY,
        "apply-force": SCALE_APPLY,
        "managed-after-scale": SCALE_APPLY,
        "table": SCALE_APPLY,
    },
    "reads": {
        "post-to-name": "a POST to an object is 405 here, as for every built-in kind",
        "put-to-collection": "a PUT to a collection is 405 here, as for every built-in kind",
    },
}


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

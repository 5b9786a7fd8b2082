"""ClusterTrustBundles and PodCertificateRequests, beside what an original of v1.37 answered."""

import json
from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.apiserver.authn.user import MASTERS
from sampan.core.clock import SystemClock
from tests.support import virtual_time
from tests.support.certificate_story import Story
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

RECORDED = Path(__file__).parent / "recorded" / "certificate_kinds.json"
USERS = {
    "admin": ("admin", MASTERS),
    "eve": ("eve", ""),
    "node": ("system:node:n1", "system:nodes"),
}


@pytest.mark.slow
def test_every_answer_is_that_of_the_original():
    """[V1] [A5]"""

    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:

            async def send(method, path, body, user):
                name, group = USERS[user]
                reply = await api.send(method, path, body, user=name, group=group)
                return reply.status, reply.obj

            return await Story(send, "v1", SystemClock.now()).told()

    with features.used(Release("1.37")):
        ours = virtual_time.run(main())
    theirs = json.loads(RECORDED.read_text())
    wrong = {
        key: (theirs.get(key), found) for key, found in ours.items() if found != theirs.get(key)
    }
    assert wrong == {}

"""What admission makes of stored objects costs a few lines for each of their items, not for each
pair of them; and nothing stays of what they name."""

import pytest

from sampan.api.resources import CONFIG_MAPS, RESOURCE_QUOTAS
from sampan.apiserver.authn.user import MASTERS, User
from sampan.client.inprocess import InProcessClient
from tests.growth.line_counts import Counts, counted
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

N = 150
MOST_LINES = 150  # for each name of a quota
COUNTER = "system:kube-controller-manager"


def quota(count):
    hard = {f"count/k{n}.example.com": "1" for n in range(count)}
    hard["count/configmaps"] = "100"
    return {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}


def lines_of(count):
    """Of a count by the server, and of a charge."""
    counts: Counts = Counts()

    async def main():
        async with api_server(published_schema()) as api:
            client = InProcessClient(api.server.as_user(User(COUNTER, (MASTERS,))), "me")
            cache = api.server._registry.cache
            made = await client.create(RESOURCE_QUOTAS, quota(count))
            kinds = len(cache.kinds())
            with counted(counts):
                await client.update(RESOURCE_QUOTAS, made, subresource="status")
                await client.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
            found = await client.get(RESOURCE_QUOTAS, "default", "q")
            assert found["status"]["used"]["count/configmaps"] == "2"  # with the root's certificate
            assert len(found["status"]["used"]) == count + 1
            assert len(cache.kinds()) - kinds < 5

    virtual_time.run(main())
    return counts


@pytest.mark.slow
def test_a_quota_costs_a_few_lines_for_each_of_its_names():
    few, many = lines_of(N), lines_of(2 * N)
    more = {place: (many[place] - few[place]) / N for place in many}
    assert sum(more.values()) <= MOST_LINES, sorted(more.items(), key=lambda one: -one[1])[:5]

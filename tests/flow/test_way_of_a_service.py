"""docs/flows/service.md, followed: the files that its steps name are entered, in order, no others.

The cluster is simulated: the node's proxy and the kernel are tests/e2e/test_cri_network.py's.
"""

import asyncio
from pathlib import Path

import pytest

from sampan.api.resources import SERVICES, by_kind
from tests.support.worlds import followed_stories as stories
from tests.support.worlds import followed_way as way

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "flows" / "service.md"
STEPS = way.steps_in(PAGE.read_text().partition("What can go wrong")[0])[:6]
FOLDERS = ("apiserver/registry/services/", "controllers/services/", "api/validation/network/")
SLICES = by_kind("discovery.k8s.io/v1", "EndpointSlice")
# Of the old form of the slice, and parts of the checks.
BESIDE = ("api/validation/network/endpoints.py", "api/validation/network/addresses.py")


async def served(client) -> None:
    meta = {"name": "web", "namespace": "default"}
    spec = {"selector": stories.LABELS, "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    created = await client.create(SERVICES, service)
    await stories.seen(client, SLICES, created, lambda obj: obj.get("endpoints"))


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> way.Entries:
    return asyncio.run(
        way.followed(tmp_path_factory.mktemp("cluster"), served, stories.running_pod)
    )


def test_every_file_that_a_step_names_is_entered(entered):
    assert way.missing(STEPS, entered, set()) == []


def test_the_steps_come_in_their_order(entered):
    order = way.order_of_steps(STEPS, entered, set())
    assert order == sorted(order)


def test_no_file_of_services_is_left_out(entered):
    left = way.left_out(STEPS, entered, *BESIDE)
    assert [path for path in left if path.startswith(FOLDERS)] == []

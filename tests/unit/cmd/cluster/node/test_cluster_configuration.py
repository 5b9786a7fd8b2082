import pytest

from sampan.api.errors import Forbidden
from sampan.api.resources import CONFIG_MAPS
from sampan.cmd.cluster.node.cluster_configuration import (
    ClusterConfiguration,
    config_map,
    configuration_in,
    publish,
    read_configuration,
    service_cidr,
)
from tests.support.virtual_time import run
from tests.support.worlds.control_plane import ControlPlane

WHOLE = ClusterConfiguration("10.40.0.0/16", "10.50.0.0/16", "vxlan")
MANAGER = "system:kube-controller-manager"


def story(test):
    async def inside():
        async with ControlPlane(list) as plane:
            await test(plane)

    def test_run():
        run(inside())

    test_run.__name__ = test.__name__
    return test_run


@pytest.mark.parametrize(
    "known",
    [WHOLE, ClusterConfiguration(), ClusterConfiguration("10.40.0.0/16,fd00:40::/48", "", "none")],
)
def test_what_is_published_is_what_is_read(known):
    assert configuration_in(config_map(known)) == known


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"ClusterConfiguration": "{"},
        {"ClusterConfiguration": "- 1"},
        {"ClusterConfiguration": "networking: 7"},
        {"ClusterConfiguration": "networking: {podSubnet: everywhere, serviceSubnet: [1]}"},
        {"network": "carrier pigeons"},
    ],
)
def test_what_makes_no_sense_is_not_known(data):
    assert configuration_in({"data": data}) == ClusterConfiguration()


@story
async def test_nodes_and_those_that_become_some_may_read_what_the_controllers_published(plane):
    await publish(plane.as_component(MANAGER), WHOLE)
    for reader in ("system:node:n1", "system:kube-proxy"):
        assert await read_configuration(plane.as_component(reader)) == WHOLE
    with pytest.raises(Forbidden):
        await plane.as_component("system:kube-scheduler").get(
            CONFIG_MAPS, "kube-system", "sampan-config"
        )
    assert await read_configuration(plane.as_component("system:kube-scheduler")) is None


@story
async def test_a_later_start_corrects_it_and_the_api_s_own_service_range_is_found(plane):
    await publish(plane.as_component(MANAGER), WHOLE)
    await publish(plane.as_component(MANAGER), ClusterConfiguration("10.60.0.0/16"))
    found = await read_configuration(plane.as_component("system:node:n1"))
    # Processes of their own do not know the mode: an administrator's stays.
    assert found == ClusterConfiguration("10.60.0.0/16", "10.96.0.0/12", "vxlan")


@story
async def test_a_cluster_of_kubeadm_is_understood(plane):
    theirs = {**config_map(WHOLE), "metadata": {"name": "kubeadm-config"}}
    del theirs["data"]["network"]
    await plane.client.create(CONFIG_MAPS, theirs, "kube-system")
    found = await read_configuration(plane.client)
    assert found == ClusterConfiguration("10.40.0.0/16", "10.50.0.0/16", "")


@story
async def test_who_may_not_publish_starts_all_the_same(plane):
    await publish(plane.as_component("system:kube-scheduler"), WHOLE)
    assert await read_configuration(plane.client) is None


@story
async def test_the_api_s_own_range_is_known_where_nobody_has_published_any(plane):
    """A proxy that starts before the ConfigMap is there, or in another's cluster."""
    assert await read_configuration(plane.client) is None
    assert await service_cidr(plane.client) == "10.96.0.0/12"
    assert await service_cidr(plane.as_component("nobody")) == ""

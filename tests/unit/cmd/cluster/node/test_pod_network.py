import asyncio
import io
import json

import pytest

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node.pod_network import NodePodNetwork
from sampan.cmd.cluster.nodes import NodeIdentity, NodeSetup
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import PluginChoices, UpSettings
from sampan.core.clock import SystemClock


def network_of(root, **choices):
    clock = SystemClock()
    progress = Progress(io.StringIO(), clock)
    identity = NodeIdentity("n", ("192.0.2.1",))
    return NodePodNetwork(
        NodeSetup(UpSettings(**choices), DataDir(root), identity, progress, clock)
    )


@pytest.mark.parametrize(
    ("subnet", "mode", "whose"),
    [("198.19.0.0/24", "auto", "a CNI plugin"), ("10.244.0.0/24", "none", "sampan's own")],
)
def test_a_data_directory_keeps_whose_network_its_pods_are_on(tmp_path, subnet, mode, whose):
    (tmp_path / "network.json").write_text(json.dumps({"bridge": "sampan0", "subnet": subnet}))
    network = network_of(tmp_path, network=mode)
    for call in (network.gateways, network.set_up):
        with pytest.raises(CannotStart, match=f"{whose}.*new data directory"):
            asyncio.run(call())


@pytest.mark.parametrize(
    "plugins", [PluginChoices("/etc/x"), PluginChoices("", "/opt/x"), PluginChoices("", "", False)]
)
def test_flags_for_a_plugin_of_the_user_s_are_refused_where_the_network_is_ours(tmp_path, plugins):
    with pytest.raises(CannotStart, match="are for --network none"):
        asyncio.run(network_of(tmp_path, plugins=plugins).gateways())


def test_who_leaves_services_to_others_too_has_nothing_of_ours(tmp_path):
    choices = PluginChoices(str(tmp_path / "net.d"), "/opt/x", service_proxy=False)
    network = network_of(tmp_path, network="none", plugins=choices)
    assert asyncio.run(network.gateways()) == ()
    assert asyncio.run(network.set_up()) == (tmp_path / "net.d", tmp_path.joinpath("/opt/x"))
    assert network.network is None
    assert network.dns_addresses == ()
    assert not list(tmp_path.iterdir())

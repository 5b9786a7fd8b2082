"""Plugins as small programs, which note what they are told. The reference plugins: tests/e2e."""

import asyncio
import json
import os

import pytest

from sampan.network.plugins.plugin_network import PluginNetwork, PluginPlaces, PodOfPlugins
from sampan.network.plugins.plugin_program import PluginFailed

POD = PodOfPlugins("shop", "web", "u-1", {"portMappings": [{"hostPort": 80}]})
RESULT = {"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.5/24"}]}
NOTES = """#!/bin/sh
read told
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_ARGS $told" >> {directory}/calls
{rest}
"""


@pytest.fixture
def world(tmp_path):
    """A network of the two plugins `first` and `second`."""
    places = PluginPlaces(tmp_path / "conf", tmp_path / "bin", tmp_path / "records")
    places.configurations.mkdir()
    places.programs.mkdir()
    plugins = [{"type": "first"}, {"type": "second", "capabilities": {"portMappings": True}}]
    written = {"cniVersion": "1.0.0", "name": "mine", "plugins": plugins}
    (places.configurations / "10.conflist").write_text(json.dumps(written))
    program(places, "first", f"test $CNI_COMMAND = DEL || echo '{json.dumps(RESULT)}'")
    program(places, "second", f"test $CNI_COMMAND = DEL || echo '{json.dumps(RESULT)}'")
    return places


def program(places, name, rest):
    file = places.programs / name
    file.write_text(NOTES.format(directory=places.programs, rest=rest))
    file.chmod(0o755)


def network(places):
    return PluginNetwork(places, {"PATH": os.defpath})


def attach(places):
    return asyncio.run(network(places).attach("c1", "/n/1", POD))


def detach(places, namespace="/n/1"):
    asyncio.run(network(places).detach("c1", namespace))


def calls(places):
    found = []
    for line in (places.programs / "calls").read_text().splitlines():
        command, container, namespace, interface, arguments, told = line.split(" ", 5)
        assert (container, interface) == ("c1", "eth0")
        assert arguments == (
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;"
            "K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u-1"
        )
        found.append((command, namespace, json.loads(told)))
    return found


def test_plugins_are_called_in_order_and_in_the_other(world):
    assert attach(world) == ("10.1.0.5",)
    detach(world)
    added, more, removed, last = calls(world)
    assert [(call[0], call[2]["type"]) for call in (added, more, removed, last)] == [
        ("ADD", "first"), ("ADD", "second"), ("DEL", "second"), ("DEL", "first"),
    ]  # fmt: skip
    assert "prevResult" not in added[2]
    assert "runtimeConfig" not in added[2]
    assert more[2]["prevResult"] == removed[2]["prevResult"] == last[2]["prevResult"] == RESULT
    assert more[2]["runtimeConfig"] == removed[2]["runtimeConfig"] == POD.capabilities
    assert not list(world.records.iterdir())
    detach(world)  # nobody is called again
    assert len(calls(world)) == 4


def test_a_failure_is_told_in_the_plugin_s_words_and_taken_back_by_another_process(world):
    program(
        world,
        "second",
        """test $CNI_COMMAND = DEL && exit 0
            echo '{"code": 100, "msg": "no ports left", "details": "80 is taken"}'; exit 1""",
    )
    with pytest.raises(PluginFailed) as failed:
        attach(world)
    why = 'plugin type="second" failed (add): no ports left; 80 is taken'
    assert str(failed.value) == why
    detach(world, namespace="")
    assert [call[:2] for call in calls(world)][2:] == [("DEL", ""), ("DEL", "")]
    assert "prevResult" not in calls(world)[2][2]


def test_a_pod_is_taken_back_by_what_it_was_made_with(world):
    attach(world)
    (world.configurations / "10.conflist").unlink()
    assert "no network config found" in network(world).why_not_ready()
    detach(world)
    assert [call[0] for call in calls(world)] == ["ADD", "ADD", "DEL", "DEL"]


def test_a_deletion_that_fails_is_tried_again(world):
    attach(world)
    (world.programs / "first").rename(world.programs / "away")
    with pytest.raises(PluginFailed) as failed:
        detach(world)
    where = f"in path [{world.programs}]"
    why = f'plugin type="first" failed (delete): failed to find plugin "first" {where}'
    assert str(failed.value) == why
    (world.programs / "away").rename(world.programs / "first")
    detach(world)
    assert not list(world.records.iterdir())


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("exit 3", "netplugin failed with no error message: exit status 3"),
        ("echo panic >&2; exit 2", "netplugin failed: 'panic'"),
        ("echo nonsense; exit 2", "error parsing its diagnostic message 'nonsense"),
        ("echo nonsense", "its result 'nonsense"),
        ("true", 'failed to find network info for sandbox "c1"'),
        ("""echo '{"ips": ["10.1.0.5"]}'""", "cannot be read"),
    ],
)
def test_what_a_plugin_does_wrong_is_said(world, rest, why):
    program(world, "first", rest)
    program(world, "second", "true")
    with pytest.raises(PluginFailed) as failed:
        attach(world)
    assert why in str(failed.value)


def test_a_plugin_that_never_was_there_has_nothing_to_take_back(world):
    (world.programs / "second").unlink()
    with pytest.raises(PluginFailed, match="failed to find plugin"):
        attach(world)
    detach(world)
    assert [call[0] for call in calls(world)] == ["ADD", "DEL"]
    assert not list(world.records.iterdir())


def test_a_type_is_a_name_and_no_path(world):
    written = {"cniVersion": "1.0.0", "name": "mine", "type": "../bin/first"}
    (world.configurations / "10.conflist").write_text(json.dumps(written))
    with pytest.raises(PluginFailed, match="invalid plugin name"):
        attach(world)
    detach(world)
    assert not list(world.records.iterdir())

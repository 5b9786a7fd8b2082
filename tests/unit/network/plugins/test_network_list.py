"""Configurations as users write them, and what plugins of each version are told."""

import json

import pytest

from sampan.network.plugins.network_list import (
    NotConfigured,
    addresses_in,
    configured_list,
    list_of,
)

PORTS = {"type": "portmap", "capabilities": {"portMappings": True, "bandwidth": False}}
LIST = {"cniVersion": "1.0.0", "name": "mine", "plugins": [{"type": "bridge", "mtu": 1400}, PORTS]}


def test_the_first_file_by_name_counts(tmp_path):
    (tmp_path / "20-later.conflist").write_text(json.dumps({**LIST, "name": "later"}))
    (tmp_path / "10-first.conflist").write_text(json.dumps(LIST))
    (tmp_path / "00-notes.txt").write_text("no configuration")
    found = configured_list(tmp_path)
    assert (found.name, found.version) == ("mine", "1.0.0")
    assert [plugin["type"] for plugin in found.plugins] == ["bridge", "portmap"]


def test_one_plugin_alone_is_a_list_of_one(tmp_path):
    written = {"cniVersion": "0.3.1", "name": "alone", "type": "macvlan"}
    (tmp_path / "10.conf").write_text(json.dumps(written))
    found = configured_list(tmp_path)
    assert (found.name, found.plugins) == ("alone", (written,))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "no network config found in"),
        ({"10.conf": "{"}, "failed to load CNI config file"),
        ({"10.conf": "[]"}, "no JSON object"),
        ({"10.conflist": '{"name": "x", "plugins": []}'}, "no plugins"),
        ({"10.conflist": '{"name": "x", "plugins": [{}]}'}, 'no "type"'),
        ({"10.conf": '{"type": "bridge"}'}, 'no "name"'),
    ],
)
def test_what_is_missing_or_wrong_is_said(tmp_path, files, why):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(NotConfigured, match=why):
        configured_list(tmp_path)


def test_a_directory_that_is_not_there_has_no_configuration(tmp_path):
    with pytest.raises(NotConfigured, match="no network config found"):
        configured_list(tmp_path / "none")


def test_a_plugin_is_told_of_the_capabilities_that_it_has_and_of_what_came_before():
    found = list_of(LIST)
    bridge, ports = found.plugins
    capabilities = {"portMappings": [{"hostPort": 80}], "bandwidth": {"ingressRate": 1}}
    assert json.loads(found.told(bridge, capabilities, None)) == {
        "type": "bridge", "mtu": 1400, "name": "mine", "cniVersion": "1.0.0",
    }  # fmt: skip
    assert json.loads(found.told(ports, capabilities, {"ips": []})) == {
        "type": "portmap", "name": "mine", "cniVersion": "1.0.0",
        "runtimeConfig": {"portMappings": [{"hostPort": 80}]}, "prevResult": {"ips": []},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.1.0", False), ("0.3.1", False), ("0.4.0", True), ("1.0.0", True), ("1.1.0", True)],
)
def test_deletions_are_told_the_result_since_0_4_0(version, told):
    assert list_of({**LIST, "cniVersion": version}).tells_deletions is told


@pytest.mark.parametrize(
    ("result", "addresses"),
    [
        ({"ips": [{"address": "10.1.0.5/24"}]}, ("10.1.0.5",)),
        (
            {
                "interfaces": [{"name": "veth1"}, {"name": "eth0", "sandbox": "/n"}],
                "ips": [
                    {"interface": 0, "address": "10.1.0.1/24"},
                    {"interface": 1, "address": "10.1.0.5/24"},
                    {"interface": 1, "address": "fd00::5/64"},
                ],
            },
            ("10.1.0.5", "fd00::5"),
        ),
        ({"ip4": {"ip": "10.1.0.5/24"}, "ip6": {"ip": "fd00::5/64"}}, ("10.1.0.5", "fd00::5")),
        ({}, ()),
    ],
)
def test_addresses_are_those_of_the_pod_s_interface(result, addresses):
    assert addresses_in(result, "eth0") == addresses

import json

import pytest

from sampan.network.pods.bandwidth import UNLIMITED, Bandwidth, Limit
from sampan.network.pods.plugin_protocol import (
    BAD_CONFIGURATION,
    BAD_ENVIRONMENT,
    INCOMPATIBLE_VERSION,
    UNDECODABLE,
    PluginError,
    PortMapping,
    answer,
    parse_call,
    refusal,
    result,
    versions,
)

ENVIRONMENT = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "abc",
    "CNI_IFNAME": "eth0",
    "CNI_NETNS": "/run/netns/x",
}
CONFIG = {"cniVersion": "1.0.0", "name": "sampan", "type": "sampan"}


def sent(environment=(), config=(), body=None):
    pairs = {**ENVIRONMENT, **dict(environment)}
    head = b"".join(f"{name}={value}\0".encode() for name, value in pairs.items())
    written = json.dumps({**CONFIG, **dict(config)}).encode()
    return head + b"\0" + (written if body is None else body)


def refused(data):
    with pytest.raises(PluginError) as caught:
        parse_call(data)
    return caught.value.code


def test_a_call_is_read():
    call = parse_call(sent())
    assert (call.command, call.container, call.interface) == ("ADD", "abc", "eth0")
    assert (call.namespace, call.version, call.type) == ("/run/netns/x", "1.0.0", "sampan")


def test_limits_of_bandwidth_are_read_as_containerd_writes_them():
    assert parse_call(sent()).bandwidth == UNLIMITED
    given = {"IngressRate": 13_000_000, "IngressBurst": 4294967295, "egressRate": 1000}
    call = parse_call(sent(config={"runtimeConfig": {"bandwidth": given}}))
    assert call.bandwidth == Bandwidth(Limit(13_000_000, 4294967295), Limit(1000))
    wrong = {"runtimeConfig": {"bandwidth": {"egressRate": -1}}}
    assert refused(sent(config=wrong)) == BAD_CONFIGURATION


@pytest.mark.parametrize(
    ("told", "uid"),
    [
        ("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_UID=u-1", "u-1"),
        ("K8S_POD_NAME=web", ""),
        ("", ""),
        (";;=;K8S_POD_UID", ""),
    ],
)
def test_the_pod_is_known_where_the_runtime_says_it(told, uid):
    assert parse_call(sent({"CNI_ARGS": told})).pod_uid == uid


def test_ports_are_read_as_containerd_and_as_others_write_them():
    theirs = [{"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}]
    others = [
        {"hostPort": 53, "containerPort": 5353, "protocol": "udp", "hostIP": "192.0.2.1"},
        {"hostPort": 0, "containerPort": 1},
        {"hostPort": 9, "containerPort": 9, "hostIP": "0.0.0.0"},
    ]
    call = parse_call(sent(config={"runtimeConfig": {"portMappings": theirs + others}}))
    assert call.ports == (
        PortMapping(8080, 80, "TCP"),
        PortMapping(53, 5353, "UDP", "192.0.2.1"),
        PortMapping(9, 9, "TCP"),
    )


@pytest.mark.parametrize(
    ("environment", "config", "code"),
    [
        ({"CNI_COMMAND": "FLY"}, {}, BAD_ENVIRONMENT),
        ({"CNI_CONTAINERID": ""}, {}, BAD_ENVIRONMENT),
        ({"CNI_CONTAINERID": "../../etc"}, {}, BAD_ENVIRONMENT),
        ({"CNI_IFNAME": "a/b"}, {}, BAD_ENVIRONMENT),
        ({"CNI_IFNAME": "0123456789abcdef"}, {}, BAD_ENVIRONMENT),
        ({"CNI_NETNS": ""}, {}, BAD_ENVIRONMENT),
        ({}, {"cniVersion": "9.0.0"}, INCOMPATIBLE_VERSION),
        ({}, {"runtimeConfig": {"portMappings": [{"hostPort": "x"}]}}, BAD_CONFIGURATION),
        ({}, {"runtimeConfig": 7}, BAD_CONFIGURATION),
    ],
)
def test_what_is_wrong_has_the_code_that_the_specification_gives_it(environment, config, code):
    assert refused(sent(environment, config)) == code


@pytest.mark.parametrize("body", [b"{", b"[]", b"7"])
def test_a_configuration_that_is_no_object_is_undecodable(body):
    assert refused(sent(body=body)) == UNDECODABLE


def test_a_call_that_was_cut_off_is_undecodable():
    assert refused(b"CNI_COMMAND=ADD") == UNDECODABLE


def test_a_deletion_needs_no_namespace_any_more():
    assert parse_call(sent({"CNI_COMMAND": "DEL", "CNI_NETNS": ""})).command == "DEL"


def test_the_version_is_said_whatever_is_asked_with():
    call = parse_call(sent({"CNI_COMMAND": "VERSION"}, {"cniVersion": "9.0.0"}))
    assert versions(call.version)["cniVersion"] == "1.1.0"
    assert "0.4.0" in versions("1.0.0")["supportedVersions"]


def test_what_is_still_valid_is_read_for_garbage_collection():
    valid = [{"containerID": "abc", "ifname": "eth0"}]
    call = parse_call(sent({"CNI_COMMAND": "GC"}, {"cni.dev/valid-attachments": valid}))
    assert call.valid == (("abc", "eth0"),)


def test_old_versions_are_told_which_family_an_address_is_of():
    ends = [{"name": "br"}, {"name": "eth0"}]
    old = result("0.3.1", ends, ["10.0.0.2/24", "fd00::2/64"], ["10.0.0.1"])
    assert [(ip["version"], ip["interface"]) for ip in old["ips"]] == [("4", 1), ("6", 1)]
    assert [ip.get("gateway") for ip in old["ips"]] == ["10.0.0.1", None]
    assert "version" not in result("1.0.0", ends, ["10.0.0.2/24"])["ips"][0]


def test_answers_begin_with_the_exit_code():
    assert answer(None) == b"\0"
    assert json.loads(answer({"a": 1})[1:]) == {"a": 1}
    said = refusal("1.0.0", PluginError(7, "wrong"))
    assert said[0] == 1
    assert json.loads(said[1:]) == {"cniVersion": "1.0.0", "code": 7, "msg": "wrong"}

"""Simulated nodes from a file: what each becomes, and what is refused."""

import pytest

from sampan.api.configuration import BadConfiguration
from sampan.kubelet.simulated.node_types import TYPE_LABEL, ZONE_LABEL, Outage, shapes_of


def shapes(*types):
    document = {"apiVersion": "simulated.sampan.dev/v1", "kind": "Nodes", "types": [*types]}
    return shapes_of(document)


def test_a_type_becomes_its_nodes():
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    found = shapes(
        {
            "name": "large",
            "count": 3,
            "capacity": {"cpu": "1500m", "memory": "64Gi", "pods": 30, "example.com/gpu": 4},
            "zones": ["a", "b"],
            "labels": {"disk": "ssd"},
            "taints": [taint],
        },
        {"name": "small"},
    )
    assert [shape.name for shape in found] == ["large-0", "large-1", "large-2", "small-0"]
    assert [shape.labels.get(ZONE_LABEL) for shape in found] == ["a", "b", "a", None]
    first, last = found[0], found[-1]
    assert first.labels == {TYPE_LABEL: "large", ZONE_LABEL: "a", "disk": "ssd"}
    assert first.taints == (taint,)
    assert first.capacity is not None
    assert (first.capacity.cpu_milli, first.capacity.memory_bytes) == (1500, 64 * 1024**3)
    assert (first.capacity.pods, first.capacity.extended) == (30, {"example.com/gpu": "4"})
    assert last.capacity is None, "as all simulated nodes"


def test_devices_become_slices_of_their_node():
    [shape, _] = shapes(
        {
            "name": "n",
            "count": 2,
            "devices": [{"driver": "gpu.example.com", "name": "gpu", "count": 2,
                         "attributes": {"model": {"string": "a"}}}],
        }
    )  # fmt: skip
    [spec] = shape.slices
    assert (spec["nodeName"], spec["driver"]) == ("n-0", "gpu.example.com")
    assert [device["name"] for device in spec["devices"]] == ["gpu-0", "gpu-1"]
    assert spec["devices"][0]["attributes"] == {"model": {"string": "a"}}


def test_a_device_may_be_offered_in_parts():
    """[H7]"""
    [shape] = shapes(
        {
            "name": "n",
            "devices": [{"driver": "gpu.example.com", "name": "gpu", "count": 2, "partitions": 2,
                         "attributes": {"model": {"string": "a"}},
                         "capacity": {"memory": {"value": "80Gi"}}}],
        }
    )  # fmt: skip
    [spec] = shape.slices
    names = ["gpu-0-part-0", "gpu-0-part-1", "gpu-1-part-0", "gpu-1-part-1"]
    assert [device["name"] for device in spec["devices"]] == names
    last = spec["devices"][-1]
    assert last["attributes"] == {"model": {"string": "a"}, "parent": {"string": "gpu-1"}}
    assert last["capacity"] == {"memory": {"value": "40Gi"}}
    assert not shape.pretence.is_any, "claims are taken as prepared"


def test_nodes_pretend_plugins_and_drivers():
    [first, second, other] = shapes(
        {
            "name": "n",
            "count": 2,
            "zones": ["a", "b"],
            "devicePlugins": [{"resource": "example.com/gpu", "count": 2}],
            "csiDrivers": [{"name": "disk.example.com", "volumes": 8, "topology": [ZONE_LABEL],
                            "capacity": "10Gi"}],
        },
        {"name": "other", "devices": [{"driver": "d.example.com", "prepares": True}]},
    )  # fmt: skip
    [plugin], [driver] = second.pretence.plugins, second.pretence.drivers
    assert (plugin.resource, plugin.ids) == ("example.com/gpu", ("device-0", "device-1"))
    assert (driver.most_volumes, driver.capacity_bytes) == (8, 10 * 1024**3)
    assert (driver.topology, driver.attaches) == ({ZONE_LABEL: "b"}, True)
    assert first.pretence.drivers[0].topology == {ZONE_LABEL: "a"}
    assert other.pretence.drivers == ()
    assert other.pretence.prepares
    assert other.pretence.known_drivers == {"disk.example.com"}, "it is missing there"


@pytest.mark.parametrize(
    ("word", "entry", "says"),
    [
        ("devicePlugins", {"resource": "cpu"}, "'cpu' is no extended resource"),
        ("devicePlugins", {"resource": "example.com/x"}, "capacity says how many there are"),
        ("devicePlugins", {"resource": "a.com/b", "count": 1001}, "count: at most 1000"),
        ("csiDrivers", {"name": "d.com", "topology": ["rack"]}, "its nodes have no label rack"),
        ("csiDrivers", {"name": "d.com", "capacity": "much"}, "'much' is no quantity"),
        ("csiDrivers", {"name": "d.com", "speed": 1}, "csiDrivers[0].speed"),
        ("devices", {"driver": "d.com", "count": 10, "partitions": 20}, "at most 128"),
        ("devices", {"driver": "d.com", "partitions": 2, "capacity": {"m": {}}}, "capacity.m"),
    ],
)
def test_what_nobody_can_pretend_is_refused(word, entry, says):
    with pytest.raises(BadConfiguration) as refused:
        shapes({"name": "n", "capacity": {"example.com/x": 1}, word: [entry]})
    assert says in str(refused.value)


def test_failures_concern_a_zone_or_some_or_all():
    found = shapes(
        {
            "name": "n",
            "count": 4,
            "zones": ["a", "b"],
            "failures": [{"at": "1h", "zone": "b"}, {"at": "10m", "for": "5m", "count": 1}],
        }
    )
    assert [shape.outages for shape in found] == [
        (Outage(600, 300),), (Outage(3600),), (), (Outage(3600),),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "Large"}, r"types\[0\].name"),
        ({"name": "n", "cout": 1}, r"types\[0\].cout: unknown field"),
        ({"name": "n", "count": -1}, "no number"),
        ({"name": "n", "count": 10**9}, "at most"),
        ({"name": "n", "capacity": {"cpu": "much"}}, "capacity.cpu: 'much' is no quantity"),
        ({"name": "n", "capacity": {"cpu": [1]}}, "no quantity"),
        ({"name": "n", "capacity": {"gpus": 1}}, "no node has such a resource"),
        ({"name": "n", "capacity": {"cpu": -1}}, "negative"),
        ({"name": "n", "labels": {"a b": "c"}}, "labels"),
        ({"name": "n", "taints": [{"key": "a", "effect": "Never"}]}, r"taints\[0\].effect"),
        ({"name": "n", "taints": ["a"]}, "expected an object"),
        ({"name": "n", "devices": [{"driver": "a", "count": 1000}]}, "at most 128"),
        ({"name": "n", "failures": [{"at": "soon"}]}, r"failures\[0\].at"),
        ({"name": "n", "failures": [{"at": "1h", "zone": "x"}]}, "no zone x"),
        ({"name": "n", "failures": [{"at": "1h"}, {"at": "2h"}]}, "overlap"),
        ("n", "expected an object"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(given, says):
    with pytest.raises(BadConfiguration, match=says):
        shapes(given)


def test_two_nodes_of_one_name_are_refused():
    with pytest.raises(BadConfiguration, match="2 nodes have the name n-0"):
        shapes({"name": "n"}, {"name": "n"})


@pytest.mark.parametrize("document", [None, [], {"kind": "Nodes"}, {"types": []}])
def test_what_is_no_such_document_is_refused(document):
    with pytest.raises(BadConfiguration):
        shapes_of(document)


def test_nodes_of_a_type_may_have_names_of_their_own():
    [first, second] = shapes({"name": "t", "names": ["a.example", "b"], "zones": ["x"]})
    assert [first.name, second.name] == ["a.example", "b"]
    assert second.labels == {ZONE_LABEL: "x"}, "they are what they are: no type of ours"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"names": ["a"], "count": 2}, "types[0].count: names says how many there are"),
        ({"names": ["A_"]}, "types[0].names"),
        ({"names": "a"}, "types[0].names: expected a list"),
    ],
)
def test_names_that_cannot_be_are_refused(given, problem):
    with pytest.raises(BadConfiguration) as caught:
        shapes({"name": "t", **given})
    assert problem in str(caught.value)

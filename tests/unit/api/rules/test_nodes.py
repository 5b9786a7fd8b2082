"""Facts about nodes."""

from sampan.api.rules import nodes

NODE = {
    "metadata": {"name": "n1", "labels": {"disk": "ssd", "cores": "8"}},
    "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "Hostname", "address": "n1"},
        ],
    },
}


def test_addresses_come_in_the_order_asked_for():
    assert nodes.addresses(NODE) == ["10.0.0.1", "n1"]
    assert nodes.addresses(NODE, "Hostname", "InternalIP") == ["n1", "10.0.0.1"]
    assert nodes.addresses(NODE, "ExternalIP") == []


def test_readiness_and_cordon_are_read_from_the_node():
    assert nodes.is_ready(NODE)
    assert not nodes.is_ready({})
    assert nodes.is_unschedulable({"spec": {"unschedulable": True}})
    assert nodes.taints_of(NODE)[0]["key"] == "a"

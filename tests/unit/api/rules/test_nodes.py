"""Facts about nodes."""

import pytest

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


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "value": "b"}, True),
        ({"key": "a", "value": "b", "effect": "NoSchedule"}, True),
        ({"key": "a", "value": "c"}, False),
        ({"key": "a", "value": "b", "effect": "NoExecute"}, False),
        ({"key": "x", "operator": "Exists"}, False),
        ({}, False),
        ({"key": "a", "operator": "Near"}, False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration, expected):
    """[S4]"""
    assert nodes.tolerates(toleration, NODE["spec"]["taints"][0]) is expected


def test_the_first_hard_taint_that_nothing_covers_is_named():
    soft = {"key": "s", "effect": "PreferNoSchedule"}
    hard = {"key": "h", "effect": "NoExecute"}
    assert nodes.untolerated_taint([soft, hard], []) == hard
    assert nodes.untolerated_taint([soft, hard], [{"operator": "Exists"}]) is None
    assert nodes.untolerated_taint([soft], [], ("PreferNoSchedule",)) == soft


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd", "hdd"]}, True),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, False),
        ({"key": "none", "operator": "NotIn", "values": ["ssd"]}, True),
        ({"key": "disk", "operator": "Exists"}, True),
        ({"key": "none", "operator": "DoesNotExist"}, True),
        ({"key": "cores", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "cores", "operator": "Lt", "values": ["4"]}, False),
        ({"key": "disk", "operator": "Gt", "values": ["4"]}, False),
        ({"key": "disk", "operator": "Near", "values": ["4"]}, False),
    ],
)
def test_a_node_term_holds_by_its_operator(requirement, expected):
    """[S4] A term that cannot be read matches nothing."""
    assert nodes.matches_node_term(NODE, {"matchExpressions": [requirement]}) is expected


def test_an_empty_term_and_no_terms_match_nothing():
    assert not nodes.matches_node_term(NODE, {})
    assert not nodes.matches_node_selector(NODE, {"nodeSelectorTerms": []})
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert nodes.matches_node_selector(NODE, {"nodeSelectorTerms": [{}, field]})


def test_a_pod_fits_by_selector_and_required_affinity():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["9"]}]}
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}
    assert nodes.fits_selector_and_affinity({"spec": {"nodeSelector": {"disk": "ssd"}}}, NODE)
    assert not nodes.fits_selector_and_affinity({"spec": {"nodeSelector": {"disk": "hdd"}}}, NODE)
    assert not nodes.fits_selector_and_affinity({"spec": {"affinity": affinity}}, NODE)
    assert nodes.fits_selector_and_affinity({}, NODE)


def test_preferences_add_up_and_an_empty_one_always_holds():
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = [
        {"weight": 3, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}},
        {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}},
        {"weight": 7, "preference": {}},
    ]
    pod = {"spec": {"affinity": {"nodeAffinity": {preferred: terms}}}}
    assert nodes.preferred_weight(pod, NODE) == 10
    assert nodes.preferred_weight({}, NODE) == 0


def test_addresses_come_in_the_order_asked_for():
    assert nodes.addresses(NODE) == ["10.0.0.1", "n1"]
    assert nodes.addresses(NODE, "Hostname", "InternalIP") == ["n1", "10.0.0.1"]
    assert nodes.addresses(NODE, "ExternalIP") == []


def test_readiness_and_cordon_are_read_from_the_node():
    assert nodes.is_ready(NODE)
    assert not nodes.is_ready({})
    assert nodes.is_unschedulable({"spec": {"unschedulable": True}})
    assert nodes.taints_of(NODE)[0]["key"] == "a"

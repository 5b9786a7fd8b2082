import pytest

from sampan.api.calls import Item, Options
from sampan.api.errors import BadRequest
from sampan.api.resources import CONFIG_MAPS, PODS, RESOURCE_SLICES, RESOURCES
from sampan.apiserver.registry import pods
from sampan.apiserver.registry.selection import EVERYTHING, selection_of
from sampan.apiserver.registry.strategies import Strategies, slice_strategy
from sampan.apiserver.registry.strategy import Strategy
from sampan.apiserver.settings import ApiServerSettings
from tests.support.manual_clock import ManualClock


def item(node="", **labels):
    obj = {"metadata": {"name": "x", "namespace": "a", "labels": labels}, "spec": {}}
    if node:
        obj["spec"]["nodeName"] = node
    return Item("a/x", 1, obj, b"")


def of_pods(**options):
    return selection_of(PODS, pods.STRATEGY, "", Options(**options))


def test_no_selector_selects_everything():
    assert of_pods() is EVERYTHING


def test_labels_and_fields_must_both_match():
    found = of_pods(label_selector="a=b", field_selector="spec.nodeName=n1,metadata.name!=y")
    assert found.matches(item("n1", a="b"))
    assert not found.matches(item("n2", a="b"))
    assert not found.matches(item("n1", a="c"))
    assert found.trigger == ("spec.nodeName", "n1")


def test_what_is_asked_of_one_field_is_asked_at_once():
    others = of_pods(field_selector="metadata.name!=y,metadata.name!=z")
    assert others.matches(item())
    assert not of_pods(field_selector="metadata.name!=y,metadata.name!=x").matches(item())
    assert of_pods(field_selector="metadata.name=x,metadata.name=x").matches(item())
    assert not of_pods(field_selector="metadata.name=x,metadata.name=y").matches(item())
    assert not of_pods(field_selector="metadata.name=x,metadata.name!=x").matches(item())


def test_unscheduled_pods_are_those_with_an_empty_node():
    assert of_pods(field_selector="spec.nodeName=").matches(item())
    assert not of_pods(field_selector="spec.nodeName=").matches(item("n1"))


def test_a_watch_on_one_object_is_triggered_by_its_name():
    found = selection_of(CONFIG_MAPS, Strategy(), "x", Options())
    assert found.matches(item())
    assert found.trigger == ("metadata.name", "x")


@pytest.mark.parametrize(
    "options",
    [{"field_selector": "spec.foo=x"}, {"field_selector": "x"}, {"label_selector": "a in b"}],
)
def test_bad_selectors_are_refused(options):
    with pytest.raises(BadRequest):
        of_pods(**options)


@pytest.mark.parametrize(
    ("plural", "fields"),
    [
        ("nodes", "spec.unschedulable=true"),
        ("namespaces", "status.phase=Active"),
        ("secrets", "type=Opaque"),
        ("replicationcontrollers", "status.replicas=0"),
        ("jobs", "status.successful=1"),
        ("certificatesigningrequests", "spec.signerName=a"),
        ("resourceslices", "spec.nodeName=a,spec.driver=b"),
        ("events", "involvedObject.uid=a,involvedObject.fieldPath=b,reason=c,source=d,type=e"),
        (
            "pods",
            "spec.restartPolicy=Always,spec.schedulerName=a,spec.serviceAccountName=b,"
            "spec.hostNetwork=false,status.phase=Running,status.podIP=c,status.nominatedNodeName=",
        ),
    ],
)
def test_each_kind_is_selected_by_its_own_fields_and_by_no_other(plural, fields):
    """[A7] the same list as the original's"""
    resource = next(one for one in RESOURCES if one.plural == plural)
    dated = {RESOURCE_SLICES.group_resource: slice_strategy(ManualClock())}
    strategy = Strategies(ApiServerSettings(), dated).of(resource)
    found = selection_of(resource, strategy, "", Options(field_selector=fields))
    assert found is not EVERYTHING
    with pytest.raises(BadRequest, match=r"field label .*spec\.nosuch"):
        selection_of(resource, strategy, "", Options(field_selector="spec.nosuch=a"))

import pytest

from sampan.api.resources import ENDPOINTS, PODS
from sampan.apiserver.http.metrics import Measure
from sampan.apiserver.http.request import RequestInfo
from sampan.core.metrics import Metrics


@pytest.mark.parametrize(("verb", "shown"), [("get", "GET"), ("create", "POST"), ("", "other")])
def test_a_request_is_counted_by_its_verb_also_where_it_has_none(verb, shown):
    """OPTIONS reaches a pod through its proxy, and is no verb of Kubernetes."""
    metrics = Metrics()
    Measure(metrics).served(RequestInfo(verb, "", PODS, "default", "web", "proxy"), 403, 0.1)
    assert f'verb="{shown}"' in metrics.render()


def test_sizes_are_those_of_what_was_read():
    metrics = Metrics()
    measure = Measure(metrics)
    measure.served(RequestInfo("get", "", PODS, "default", "web", ""), 200, 0.1, 1500)
    measure.served(RequestInfo("create", "", PODS, "default", "", ""), 201, 0.1, 1500)
    measure.served(RequestInfo("watch", "", PODS, "default", "", ""), 200, 9.0)
    [count] = [line for line in metrics.render().split("\n") if "response_sizes_count" in line]
    assert 'verb="GET"' in count
    assert count.endswith(" 1")


def test_deprecated_kinds_that_were_asked_for_are_told():
    metrics = Metrics()
    measure = Measure(metrics)
    measure.served(RequestInfo("get", "", PODS, "default", "web", ""), 200, 0.1)
    measure.served(RequestInfo("list", "", ENDPOINTS, "default", "", ""), 200, 0.1)
    told = [line for line in metrics.render().split("\n") if "requested_deprecated_apis{" in line]
    assert told == [
        'apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",'
        'subresource="",version="v1"} 1'
    ]


def test_answers_that_last_are_counted_until_they_are_over():
    metrics = Metrics()
    measure = Measure(metrics)
    watch = RequestInfo("watch", "", PODS, "default", "", "")
    first, second = measure.lasts(watch), measure.lasts(watch)
    elsewhere = measure.lasts(None)
    series = (
        'apiserver_longrunning_requests{component="apiserver",group="",resource="pods",'
        'scope="namespace",subresource="",verb="WATCH",version="v1"}'
    )
    assert f"{series} 2\n" in metrics.render()
    first()
    elsewhere()
    assert f"{series} 1\n" in metrics.render()
    second()
    assert f"{series} 0\n" in metrics.render()

import pytest

from sampan.api.resources import PODS
from sampan.apiserver.http.metrics import Measure
from sampan.apiserver.http.request import RequestInfo
from sampan.core.metrics import Metrics


@pytest.mark.parametrize(("verb", "shown"), [("get", "GET"), ("create", "POST"), ("", "other")])
def test_a_request_is_counted_by_its_verb_also_where_it_has_none(verb, shown):
    """OPTIONS reaches a pod through its proxy, and is no verb of Kubernetes."""
    metrics = Metrics()
    Measure(metrics).served(RequestInfo(verb, "", PODS, "default", "web", "proxy"), 403, 0.1)
    assert f'verb="{shown}"' in metrics.render()

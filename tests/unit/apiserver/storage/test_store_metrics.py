"""What the store's requests are counted as."""

import asyncio

import pytest

from sampan.api.resources import PODS
from sampan.apiserver.storage.store_metrics import StoreMetrics
from sampan.core.metrics import Metrics
from sampan.store.contract import KeyExists, StoreClosed
from tests.support.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("outcome", "errors"), [(7, 0), (KeyExists("k"), 0), (StoreClosed("gone"), 1)]
)
def test_a_conflict_is_an_answer_and_a_failure_is_none(outcome, errors):
    metrics = Metrics()
    measured = StoreMetrics(metrics, ManualClock())

    async def write():
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def story():
        return await measured.timed("create", PODS, write())

    if errors or isinstance(outcome, Exception):
        with pytest.raises(type(outcome)):
            asyncio.run(story())
    else:
        assert asyncio.run(story()) == 7
    labels = ("create", "", "pods")
    assert metrics.counter("etcd_requests_total", "").value(*labels) == 1
    assert metrics.counter("etcd_request_errors_total", "").value(*labels) == errors

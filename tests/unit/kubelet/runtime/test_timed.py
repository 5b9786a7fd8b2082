"""[N20]"""

import asyncio

import pytest

from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.runtime import RuntimeUnavailable
from sampan.kubelet.runtime.timed import TimedRuntime
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


def test_operations_and_their_errors_are_counted_under_upstreams_names():
    async def story():
        clock, metrics = LoopClock(), Metrics()
        real = SimulatedRuntime(clock=clock)
        runtime = TimedRuntime(real, clock=clock, metrics=metrics)
        await runtime.pods()
        await asyncio.sleep(0)
        real.go_down()
        with pytest.raises(RuntimeUnavailable):
            await runtime.pods()
        text = metrics.render()
        assert 'kubelet_runtime_operations_total{operation_type="list_podsandbox"} 2' in text
        assert 'kubelet_runtime_operations_errors_total{operation_type="list_podsandbox"} 1' in text
        assert "kubelet_runtime_operations_duration_seconds_bucket" in text

    virtual_time.run(story())

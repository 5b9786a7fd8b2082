"""How long admission takes, as it is told."""

import asyncio

import pytest

from sampan.api.errors import Forbidden
from sampan.api.resources import PODS
from sampan.apiserver.admission.admission_metrics import AdmissionMeasure
from sampan.apiserver.admission.chain import CREATE, Admission, Attributes, Plugin, Steps
from sampan.apiserver.authn.user import User
from sampan.core.metrics import Metrics
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


async def slow(_attributes):
    await asyncio.sleep(2)


def refuse(_attributes):
    raise Forbidden("no")


def plugin(name, **steps):
    return Plugin(name, frozenset({CREATE}), lambda: Steps(**steps))


def test_each_plugin_and_all_together_are_measured_and_who_refuses_is_told():
    async def test():
        metrics = Metrics()
        plugins = [plugin("Slow", mutate=slow), plugin("Strict", validate=refuse)]
        chain = Admission(plugins, AdmissionMeasure(metrics, LoopClock()))
        attributes = Attributes(User("jane"), CREATE, PODS, "team", "x", "", {}, None, False)
        await chain.mutate(attributes)
        with pytest.raises(Forbidden):
            await chain.validate(attributes)
        return metrics.render()

    text = virtual_time.run(test())
    start = "apiserver_admission"
    told = 'operation="CREATE",rejected="{}",type="{}"'
    admitted, refused = told.format("false", "admit"), told.format("true", "validate")
    plugins = f"{start}_controller_admission_duration_seconds"
    assert f'{plugins}_sum{{name="Slow",{admitted}}} 2' in text
    assert f'{plugins}_count{{name="Strict",{refused}}} 1' in text
    assert f"{start}_step_admission_duration_seconds_sum{{{admitted}}} 2" in text
    assert f"{start}_step_admission_duration_seconds_count{{{refused}}} 1" in text

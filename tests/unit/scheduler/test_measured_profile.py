"""What plugins cost, without another answer."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.scheduler.decision.decide import decide
from sampan.scheduler.measured_profile import measured_profile, plugin_seconds
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import clusters, pods, snapshot_of


@given(clusters(), pods(), st.integers(0, 2**16))
@settings(max_examples=30, deadline=None)
def test_a_measured_profile_decides_as_the_other(cluster, pod, seed):
    snapshot, info = snapshot_of(cluster), pod_info_of(pod)
    metrics = Metrics()
    measured = measured_profile(DEFAULT_PROFILE, metrics, SystemClock())
    found = decide(info.shape, snapshot, measured, random.Random(seed))
    assert found == decide(info.shape, snapshot, DEFAULT_PROFILE, random.Random(seed))


class Odd(Plugin):
    def filter(self, pod, node):
        return "odd"


def test_plugins_of_the_user_keep_their_names_and_are_measured():
    metrics = Metrics()
    profile = replace(DEFAULT_PROFILE, filters=(), scores=(), plugins=((Odd, {}, 1),))
    [(kind, _, _)] = measured_profile(profile, metrics, SystemClock()).plugins
    plugin = kind({}, None)
    assert plugin.name == "Odd"
    assert plugin.filter_all({}, None, ()) == {}
    [(labels, (calls, seconds))] = plugin_seconds(metrics).totals().items()
    assert labels == ("Odd", "Filter", "Success")
    assert calls == 1
    assert seconds >= 0

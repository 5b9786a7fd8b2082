"""What each plugin of a scheduler costs.

Job: a profile whose rules and plugins measure the time they take, under upstream's metric.
Invariant: what they answer is what they answered before.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ParamSpec, TypeVar

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.core.metrics import Histogram, Metrics
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.arrays import BoolArray, IntArray
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import Profile

P = ParamSpec("P")
R = TypeVar("R")


def plugin_seconds(metrics: Metrics) -> Histogram:
    return metrics.histogram(
        "scheduler_plugin_execution_duration_seconds",
        "Duration for running a plugin at a specific extension point.",
        ("plugin", "extension_point", "status"),
        buckets=[0.00001 * 1.5**step for step in range(20)],
    )


def measured_profile(profile: Profile, metrics: Metrics, clock: Clock) -> Profile:
    costs = _Costs(plugin_seconds(metrics), clock)
    return replace(
        profile,
        filters=tuple(
            replace(
                rule,
                mask=costs.around(rule.mask, rule.name, "Filter"),
                at=rule.at and costs.around(rule.at, rule.name, "Filter"),
                beforehand=rule.beforehand
                and costs.around(rule.beforehand, rule.name, "PreFilter"),
            )
            for rule in profile.filters
        ),
        scores=tuple(
            (
                replace(
                    rule,
                    points=costs.around(rule.points, rule.name, "Score"),
                    at=rule.at and costs.around(rule.at, rule.name, "Score"),
                ),
                weight,
            )
            for rule, weight in profile.scores
        ),
        plugins=tuple(
            (_measured_plugin(plugin, costs), args, weight)
            for plugin, args, weight in profile.plugins
        ),
    )


class _Costs:
    def __init__(self, seconds: Histogram, clock: Clock) -> None:
        self._seconds, self._clock = seconds, clock

    def around(self, work: Callable[P, R], plugin: str, point: str) -> Callable[P, R]:
        monotonic, observe = self._clock.monotonic, self._seconds.observe

        def measured(*given: P.args, **words: P.kwargs) -> R:
            began = monotonic()
            found = work(*given, **words)
            observe(monotonic() - began, plugin, point, "Success")
            return found

        return measured


def _measured_plugin(plugin: type[Plugin], costs: _Costs) -> type[Plugin]:
    name = plugin.__name__

    class Measured(plugin):  # type: ignore[valid-type, misc]  # of whichever class the user named
        def filter_all(self, pod: Obj, nodes: Snapshot, feasible: BoolArray) -> Mapping[int, str]:
            asked: Callable[..., Mapping[int, str]] = super().filter_all
            return costs.around(asked, name, "Filter")(pod, nodes, feasible)

        def score_all(self, pod: Obj, nodes: Snapshot, feasible: BoolArray) -> IntArray | None:
            asked: Callable[..., IntArray | None] = super().score_all
            return costs.around(asked, name, "Score")(pod, nodes, feasible)

    Measured.__name__ = name
    return Measured

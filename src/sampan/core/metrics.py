"""Counters, gauges and histograms in Prometheus' text format.

Job: cheap to update, rendered only when somebody asks.
Owner: each process builds one `Metrics` and passes it to its parts; there is no global registry.
    With it go the process's traces, and its table of memory: who tells the one may tell the other.
Invariant: a name is declared once; asking for it again returns the same metric.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from sampan.core.telemetry.memory import MemoryTable
from sampan.core.telemetry.traces import NO_TRACES, Traces

Labels = tuple[str, ...]

# As prometheus' client libraries: seconds from 5 ms to 10 s.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Metric:
    kind = "untyped"

    def __init__(self, name: str, help_text: str, labels: Sequence[str]) -> None:
        self.name, self.help_text, self.labels = name, help_text, tuple(labels)

    def lines(self) -> list[str]:
        raise NotImplementedError

    def reset(self) -> None:
        """What has been counted is forgotten; what is so is so still."""


class Counter(_Metric):
    kind = "counter"

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help_text, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *labels: str, by: float = 1.0) -> None:
        self._values[labels] = self._values.get(labels, 0.0) + by

    def forget(self, *labels: str) -> None:
        """What it was about is gone; nobody needs to read it any more."""
        self._values.pop(labels, None)

    def reset(self) -> None:
        if self.labels:  # as upstream: one without stays
            self._values.clear()

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def lines(self) -> list[str]:
        return [_line(self.name, self.labels, at, value) for at, value in self._values.items()]


class Gauge(_Metric):
    kind = "gauge"

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help_text, labels)
        self._values: dict[Labels, float] = {}
        self._read: Callable[[], dict[Labels, float]] | None = None

    def set(self, value: float, *labels: str) -> None:
        self._values[labels] = value

    def read_from(self, read: Callable[[], dict[Labels, float]]) -> None:
        """Ask `read` for the values at each scrape, instead of being told of each change."""
        self._read = read

    def lines(self) -> list[str]:
        values = self._values if self._read is None else self._read()
        return [_line(self.name, self.labels, at, value) for at, value in values.items()]


class ReadCounter(Gauge):
    """A counter that somebody else keeps."""

    kind = "counter"


class Histogram(_Metric):
    kind = "histogram"

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = SECONDS,
    ) -> None:
        super().__init__(name, help_text, labels)
        self._buckets = tuple(buckets)
        self._series: dict[Labels, list[float]] = {}

    def observe(self, value: float, *labels: str, times: int = 1) -> None:
        series = self._series.get(labels)
        if series is None:
            # One count per bucket, one for +Inf, and the sum.
            series = self._series[labels] = [0.0] * (len(self._buckets) + 2)
        series[bisect_left(self._buckets, value)] += times
        series[-1] += value * times

    def forget(self, *labels: str) -> None:
        self._series.pop(labels, None)

    def reset(self) -> None:
        if self.labels:
            self._series.clear()

    def totals(self) -> dict[Labels, tuple[int, float]]:
        """Of each series how many values there were, and their sum."""
        return {at: (int(sum(found[:-1])), found[-1]) for at, found in self._series.items()}

    def lines(self) -> list[str]:
        lines: list[str] = []
        names = (*self.labels, "le")
        for at, series in self._series.items():
            total = 0.0
            for bound, count in zip((*map(str, self._buckets), "+Inf"), series, strict=False):
                total += count
                lines.append(_line(f"{self.name}_bucket", names, (*at, bound), total))
            lines.append(_line(f"{self.name}_sum", self.labels, at, series[-1]))
            lines.append(_line(f"{self.name}_count", self.labels, at, total))
        return lines


class Metrics:
    def __init__(self, traces: Traces = NO_TRACES) -> None:
        self.traces, self.memory = traces, MemoryTable()
        self._metrics: dict[str, _Metric] = {}

    def counter(self, name: str, help_text: str, labels: Sequence[str] = ()) -> Counter:
        metric = self._metrics.get(name) or self._add(Counter(name, help_text, labels))
        assert isinstance(metric, Counter), name
        return metric

    def gauge(self, name: str, help_text: str, labels: Sequence[str] = ()) -> Gauge:
        metric = self._metrics.get(name) or self._add(Gauge(name, help_text, labels))
        assert isinstance(metric, Gauge), name
        return metric

    def read_counter(
        self,
        name: str,
        help_text: str,
        read: Callable[[], dict[Labels, float]],
        labels: Sequence[str] = (),
    ) -> None:
        """Asked for at each scrape."""
        metric = self._metrics.get(name) or self._add(ReadCounter(name, help_text, labels))
        assert isinstance(metric, ReadCounter), name
        metric.read_from(read)

    def histogram(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = SECONDS,
    ) -> Histogram:
        metric = self._metrics.get(name) or self._add(Histogram(name, help_text, labels, buckets))
        assert isinstance(metric, Histogram), name
        return metric

    def _add(self, metric: _Metric) -> _Metric:
        self._metrics[metric.name] = metric
        return metric

    def names(self) -> list[str]:
        return sorted(self._metrics)

    def reset(self) -> None:
        """Counters and histograms begin anew."""
        for metric in self._metrics.values():
            metric.reset()

    def render(self) -> str:
        lines: list[str] = []
        for name in self.names():
            metric = self._metrics[name]
            lines += [f"# HELP {name} {metric.help_text}", f"# TYPE {name} {metric.kind}"]
            lines += metric.lines()
        return "\n".join(lines) + "\n"


def _line(name: str, labels: Sequence[str], at: Sequence[str], value: float) -> str:
    pairs = ",".join(f'{label}="{_escape(v)}"' for label, v in zip(labels, at, strict=True))
    return f"{name}{{{pairs}}} {value:.15g}" if pairs else f"{name} {value:.15g}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

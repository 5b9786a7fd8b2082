"""The server's own metrics, under upstream's names.

Job: count requests and their durations.
"""

from collections.abc import Callable

from sampan.api.resources import Resource
from sampan.apiserver.http.request import RequestInfo
from sampan.core.metrics import Labels, Metrics

_SECONDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0,
            8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)  # fmt: skip
_BYTES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
_READS = ("get", "list")
_LABELS = ("component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version")
_VERBS = {"get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT",
          "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETECOLLECTION"}  # fmt: skip
OTHER = "other"  # of a method without a verb (OPTIONS through a proxy), as upstream


_DEPRECATED = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def deprecation_of(resource: Resource) -> str:
    """What everybody is warned with who uses a kind of ours that goes out; none has a date yet."""
    return "" if resource.group else _DEPRECATED.get(resource.plural, "")


class Measure:
    def __init__(self, metrics: Metrics) -> None:
        self._total = metrics.counter(
            "apiserver_request_total",
            "Counter of apiserver requests broken out for each verb, dry run value, group, "
            "version, resource, scope, component, and HTTP response code.",
            ("code", *_LABELS),
        )
        self._seconds = metrics.histogram(
            "apiserver_request_duration_seconds",
            "Response latency distribution in seconds for each verb, dry run value, group, "
            "version, resource, subresource, scope and component.",
            _LABELS,
            _SECONDS,
        )
        self._sizes = metrics.histogram(
            "apiserver_response_sizes",
            "Response size distribution in bytes for each group, version, verb, resource, "
            "subresource, scope and component.",
            (_LABELS[0], *_LABELS[2:]),
            _BYTES,
        )
        self._deprecated = metrics.gauge(
            "apiserver_requested_deprecated_apis",
            "Gauge of deprecated APIs that have been requested, broken out by API group, version, "
            "resource, subresource, and removed_release.",
            ("group", "removed_release", "resource", "subresource", "version"),
        )
        self.under_way = [0, 0]  # what only reads, what writes
        metrics.gauge(
            "apiserver_current_inflight_requests",
            "Number of requests under way, by whether they only read. What lasts is not counted.",
            ("request_kind",),
        ).read_from(
            lambda: {
                ("readOnly",): float(self.under_way[0]),
                ("mutating",): float(self.under_way[1]),
            }
        )
        self._lasting: dict[Labels, float] = {}
        metrics.gauge(
            "apiserver_longrunning_requests",
            "Gauge of all active long-running apiserver requests broken out by verb, group, "
            "version, resource, scope and component. Not all requests are tracked this way.",
            (_LABELS[0], *_LABELS[2:]),
        ).read_from(lambda: self._lasting)
        self._labels: dict[tuple[tuple[str, str, str], str, str, bool, bool], Labels] = {}

    def served(
        self, info: RequestInfo | None, code: int, seconds: float, size: int | None = None
    ) -> None:
        """`size`: of an answer that is no stream."""
        if info is None or info.elsewhere:  # names of resources that nobody here has checked
            return
        labels = self._labels_of(info)
        self._total.add(str(code), *labels)
        if info.verb != "watch":  # as upstream: a watch's length says nothing about the server
            self._seconds.observe(seconds, *labels)
            if size is not None and info.verb in _READS:
                self._sizes.observe(size, labels[0], *labels[2:])

    def lasts(self, info: RequestInfo | None) -> Callable[[], None]:
        """An answer that goes on, until what this gives is called."""
        if info is None or info.elsewhere:
            return _nothing
        labels = self._labels_of(info)
        at = (labels[0], *labels[2:])
        self._lasting[at] = self._lasting.get(at, 0.0) + 1.0

        def over() -> None:
            self._lasting[at] -= 1.0

        return over

    def _labels_of(self, info: RequestInfo) -> Labels:
        row = info.resource
        # The row's own hash would walk all of its fields.
        named = ("", "", "") if row is None else (row.group, row.version, row.plural)
        key = (named, info.verb, info.subresource, bool(info.name), bool(info.namespace))
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = _labels(info)
            if row is not None and deprecation_of(row):
                self._deprecated.set(1, row.group, "", row.plural, info.subresource, row.version)
        return labels


def _nothing() -> None:
    """Of what is not counted."""


def _labels(info: RequestInfo) -> Labels:
    resource = info.resource
    scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
    if resource is None:
        return ("apiserver", "", "", "", "", "", _VERBS.get(info.verb, OTHER), "")
    return (
        "apiserver", "", resource.group, resource.plural, scope, info.subresource,
        _VERBS.get(info.verb, OTHER), resource.version,
    )  # fmt: skip

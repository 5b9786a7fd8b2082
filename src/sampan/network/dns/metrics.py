"""Metrics of the name server, under CoreDNS' names.

Job: questions, answers and times; what the cache held, and how long other servers took.
Invariant: every question that was answered is counted once, also from answers made before.
Owner: ClusterDns.
"""

from collections.abc import Callable, Mapping

from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics

# As CoreDNS' configuration of a cluster: one server, for every zone, without views.
_SERVER = ("dns://:53", ".", "")
_SERVER_LABELS = ("server", "zone", "view")
_CACHE_LABELS = ("server", "zones", "view")
_SECONDS = tuple(0.00025 * 2**power for power in range(16))
_REQUEST, _RESPONSE = slice(0, 3), slice(3, 5)  # of the key of a series
KUBERNETES, FORWARD, CACHE = "kubernetes", "forward", "cache"  # who made an answer
SUCCESS, DENIAL = "success", "denial"


@dataclass(frozen=True, slots=True)
class Answered:
    """A message, empty where there is nothing to say, and what is counted of it."""

    message: bytes
    kind: str = "other"
    rcode: str = "FORMERR"
    plugin: str = KUBERNETES


@dataclass(frozen=True, slots=True)
class Channel:
    """How a question came."""

    proto: str  # udp or tcp
    family: str  # 1: IPv4, 2: IPv6


class Series:
    """How many answers there were of one sort."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class DnsMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._series: dict[tuple[str, ...], Series] = {}
        self._hits = {SUCCESS: 0, DENIAL: 0}
        self._misses = 0
        metrics.read_counter(
            "coredns_dns_requests_total", "Questions, by how they came and what for.",
            lambda: self._totals(_REQUEST), (*_SERVER_LABELS, "proto", "family", "type"),
        )  # fmt: skip
        metrics.read_counter(
            "coredns_dns_responses_total", "Answers, by their code and who made them.",
            lambda: self._totals(_RESPONSE), (*_SERVER_LABELS, "rcode", "plugin"),
        )  # fmt: skip
        self._took = metrics.histogram(
            "coredns_dns_request_duration_seconds", "Seconds from a question to its answer.",
            _SERVER_LABELS, _SECONDS,
        )  # fmt: skip
        self._elsewhere = metrics.histogram(
            "coredns_proxy_request_duration_seconds", "Seconds that another name server took.",
            ("proxy_name", "to", "rcode"), _SECONDS,
        )  # fmt: skip
        metrics.read_counter("coredns_cache_hits_total", "Answers from the cache.", self._read_hits,
                             (*_CACHE_LABELS, "type"))  # fmt: skip
        metrics.read_counter("coredns_cache_misses_total", "Questions that the cache did not know.",
                             lambda: {_SERVER: float(self._misses)}, _CACHE_LABELS)  # fmt: skip
        metrics.read_counter("coredns_cache_requests_total", "Questions that the cache was asked.",
                             lambda: {_SERVER: float(self._misses + sum(self._hits.values()))},
                             _CACHE_LABELS)  # fmt: skip
        self._entries = metrics.gauge(
            "coredns_cache_entries", "Answers that the cache holds.", (*_CACHE_LABELS, "type")
        )

    def series(self, channel: Channel, answer: Answered) -> Series:
        """To be counted up by one for each answer of this sort."""
        key = (channel.proto, channel.family, answer.kind, answer.rcode, answer.plugin)
        return self._series.setdefault(key, Series())

    def took(self, seconds: float) -> None:
        self._took.observe(seconds, *_SERVER)

    def read_entries_from(self, entries: Callable[[], Mapping[str, int]]) -> None:
        """How many there are of either type."""
        self._entries.read_from(
            lambda: {(*_SERVER, sort): float(count) for sort, count in entries().items()}
        )

    def hit(self, sort: str) -> None:
        self._hits[sort] += 1

    def missed(self) -> None:
        self._misses += 1

    def asked_elsewhere(self, server: tuple[str, int], rcode: str, seconds: float) -> None:
        address, port = server
        where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self._elsewhere.observe(seconds, FORWARD, where, rcode)

    def _totals(self, which: slice) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for key, series in self._series.items():
            labels = (*_SERVER, *key[which])
            found[labels] = found.get(labels, 0.0) + series.count
        return found

    def _read_hits(self) -> dict[tuple[str, ...], float]:
        return {(*_SERVER, sort): float(count) for sort, count in self._hits.items()}

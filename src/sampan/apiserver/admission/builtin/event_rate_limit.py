"""EventRateLimit: bounds how many events are created per second.

Job: token buckets per server, namespace, user, or source and object; 429 beyond.
"""

from sampan.api.errors import TooManyRequests
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.settings import EventLimit
from sampan.core.bounded import Recent
from sampan.core.clock import Clock


def plugin(initializer: PluginInitializer) -> Steps:
    buckets = [
        (item, _Buckets(item, initializer.clock)) for item in initializer.settings.event_limits
    ]

    def validate(attributes: Attributes) -> None:
        if attributes.obj is None or attributes.dry_run:
            return
        for limit, of in buckets:
            if not of.take(_bucket(limit.kind, attributes)):
                raise TooManyRequests("limit reached on type " + limit.kind)

    return Steps(validate=validate)


def _bucket(kind: str, attributes: Attributes) -> str:
    event = attributes.obj or {}
    match kind:
        case "Namespace":
            return attributes.namespace
        case "User":
            return attributes.user.name
        case "SourceAndObject":
            source, about = event.get("source") or {}, event.get("involvedObject") or {}
            key = (source.get("component"), source.get("host"), about.get("kind"),
                     about.get("namespace"), about.get("name"), about.get("uid"),
                     about.get("apiVersion"))  # fmt: skip
            return "".join(str(part or "") for part in key)
    return ""


class _Buckets:
    """Token buckets, the least recently used forgotten first."""

    def __init__(self, limit: EventLimit, clock: Clock) -> None:
        self._limit, self._clock = limit, clock
        self._left: Recent[str, tuple[float, float]] = Recent(limit.most)

    def take(self, key: str) -> bool:
        now = self._clock.monotonic()
        left, at = self._left.get(key, (float(self._limit.burst), now))
        left = min(float(self._limit.burst), left + (now - at) * self._limit.per_second)
        good = left >= 1
        self._left[key] = (left - 1 if good else left, now)
        return good

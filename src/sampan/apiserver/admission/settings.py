"""Settings of admission plugins: plain values, built in cmd/.

Job: the settings of admission, with upstream's defaults; no plugin is needed to write them down.
"""

from dataclasses import field

from sampan.api.objects import Obj
from sampan.apiserver.outside.webhook_client import Target
from sampan.core.fast_dataclass import dataclass

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
Version = tuple[int, int]
LATEST: Version = (1, 35)


@dataclass(frozen=True, slots=True)
class Standard:
    """A pod security standard: level and version."""

    level: str = PRIVILEGED
    version: Version = LATEST
    latest: bool = True

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.latest else f'v1.{self.version[1]}'}"


@dataclass(frozen=True, slots=True)
class PodSecuritySettings:
    """What holds where a namespace says nothing, and who is not asked."""

    defaults: dict[str, Standard] = field(default_factory=dict)  # by mode
    exempt_users: frozenset[str] = frozenset()
    exempt_namespaces: frozenset[str] = frozenset()
    exempt_runtime_classes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EventLimit:
    kind: str  # Server, Namespace, User, SourceAndObject
    per_second: float
    burst: int
    most: int = 4096  # buckets that are remembered


@dataclass(frozen=True, slots=True)
class ImagePolicySettings:
    """The backend that ImagePolicyWebhook asks."""

    target: Target
    allowed_seconds: float = 300.0
    denied_seconds: float = 30.0
    retry_seconds: float = 0.5
    allows_on_failure: bool = False


@dataclass(frozen=True, slots=True)
class NodeSelectorSettings:
    """Of PodNodeSelector: the cluster's own selector, and what each namespace may ask for."""

    cluster_default: str = ""
    allowed: dict[str, str] = field(default_factory=dict)  # by namespace


@dataclass(frozen=True, slots=True)
class TolerationSettings:
    """Of PodTolerationRestriction, where a namespace has no annotations."""

    defaults: tuple[Obj, ...] = ()
    allowed: tuple[Obj, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    enabled: tuple[str, ...] = ()  # beyond the default ones
    disabled: tuple[str, ...] = ()
    pod_security: PodSecuritySettings = field(default_factory=PodSecuritySettings)
    event_limits: tuple[EventLimit, ...] = ()
    image_policy: ImagePolicySettings | None = None
    node_selectors: NodeSelectorSettings = field(default_factory=NodeSelectorSettings)
    tolerations: TolerationSettings = field(default_factory=TolerationSettings)
    not_ready_seconds: int = 300  # DefaultTolerationSeconds
    unreachable_seconds: int = 300
    # Of ResourceQuota: what may be made only where a quota covers it.
    limited_resources: tuple[Obj, ...] = ()

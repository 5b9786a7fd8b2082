"""Settings of a scheduler.

Job: the values; configuration.py reads them from a file, and is loaded only where there is one.
"""

from sampan.core.backoff import Backoff
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.profile import DEFAULT_PROFILE, Profile
from sampan.scheduler.queue.queue_state import BACKOFF


@dataclass(frozen=True, slots=True)
class Tls:
    """How an extender is known, and how it knows us; PEM."""

    insecure: bool = False
    server_name: str = ""
    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class Election:
    """Of the leader among several schedulers."""

    elects: bool = True
    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    timeout_seconds: float = 30.0
    ignorable: bool = False
    node_names_only: bool = False
    managed: frozenset[str] = frozenset()  # resources; none: every pod
    tls: Tls | None = None
    not_ours: frozenset[str] = frozenset()  # of these, which the scheduler leaves to it


@dataclass(frozen=True, slots=True)
class Configuration:
    profiles: tuple[Profile, ...] = (DEFAULT_PROFILE,)
    extenders: tuple[ExtenderSettings, ...] = ()
    backoff: Backoff = BACKOFF
    election: Election = Election()
    notes: tuple[str, ...] = ()  # what was accepted and has no effect, and why

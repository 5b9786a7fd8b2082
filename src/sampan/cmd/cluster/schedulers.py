"""The scheduler of a process, from its configuration file.

Job: file → Configuration → Scheduler; its records as a document of the API server.
"""

import random
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.api.objects import Obj
from sampan.client.contract import Client
from sampan.client.leader_election import LeaseSettings
from sampan.cmd.errors import CannotStart, reason_of
from sampan.core.clock import Clock, SystemClock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tls import client_context
from sampan.scheduler.loop import Scheduler
from sampan.scheduler.settings import Configuration, Election, ExtenderSettings, Tls

if TYPE_CHECKING:
    from sampan.scheduler.extenders.extender import Extender

log = get_logger(__name__)


def configuration_in(path: str, flag: str = "--scheduler-config") -> Configuration:
    """Raises CannotStart with everything that is wrong with the file; no path: the default."""
    if not path:
        return Configuration()
    # Most schedulers have no file: its reader is not loaded for them.
    import yaml

    from sampan.api.configuration import BadConfiguration
    from sampan.scheduler.config.configuration import read

    try:
        written = yaml.safe_load(Path(path).read_text())
        found = read(written)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotStart(f"{flag} {path}: {reason_of(error)}") from error
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{flag} {path}:{problems}") from error
    for note in found.notes:
        log.warning("the scheduler's configuration has a setting without effect", setting=note)
    return found


def measured(configuration: Configuration, metrics: Metrics) -> Configuration:
    """The same, and what its plugins cost is known: by the machine's clock."""
    from sampan.scheduler.measured_profile import measured_profile

    clock = SystemClock()
    profiles = [measured_profile(profile, metrics, clock) for profile in configuration.profiles]
    return replace(configuration, profiles=tuple(profiles))


def plugin_costs(metrics: Metrics) -> dict[str, tuple[int, float]]:
    from sampan.scheduler.measured_profile import plugin_seconds

    totals = plugin_seconds(metrics).totals()
    return {f"{plugin} {point}": found for (plugin, point, _), found in totals.items()}


def scheduler_of(
    configuration: Configuration,
    client: Client,
    clock: Clock,
    metrics: Metrics,
    rng: random.Random,
) -> Scheduler:
    return Scheduler(
        client,
        clock=clock,
        rng=rng,
        metrics=metrics,
        profiles=configuration.profiles,
        extenders=[extender_of(extender) for extender in configuration.extenders],
        backoff=configuration.backoff,
    )


def extender_of(settings: ExtenderSettings) -> "Extender":
    # Loaded where there is one.
    from sampan.core.http.client import HttpClient
    from sampan.scheduler.extenders.extender import Extender

    # Each with connections of its own: one that hangs holds up no other.
    http = HttpClient(
        ssl_context=None if settings.tls is None else _trusting(settings.tls),
        connect_seconds=min(settings.timeout_seconds, 10.0),
        server_hostname=settings.tls.server_name or None if settings.tls is not None else None,
    )
    return Extender(settings, http)


def _trusting(tls: Tls) -> ssl.SSLContext:
    try:
        return client_context(
            ca_data=tls.ca or None,
            pair_data=(tls.certificate, tls.key) if tls.certificate else None,
            verify=not tls.insecure,
        )
    except (ssl.SSLError, ValueError) as error:
        raise CannotStart(f"--scheduler-config: tlsConfig of an extender: {error}") from error


def lease_of(election: Election, identity: str) -> LeaseSettings:
    """As `leaderElection` of the configuration has it."""
    return LeaseSettings(
        election.namespace,
        election.name,
        identity,
        max(1, round(election.lease_seconds)),
        election.renew_seconds,
        election.retry_seconds,
    )


def why_of(scheduler: Scheduler) -> Callable[[str], Awaitable[Obj | None]]:
    async def found(path: str) -> Obj | None:
        namespace, _, name = path.partition("/")
        return scheduler.why(namespace, name)

    return found

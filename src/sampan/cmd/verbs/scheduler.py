"""`sampan scheduler`: the scheduler as a process of its own, with an API server elsewhere.

Job: settings → the scheduler that works while the process leads.
"""

import random
import sys

from sampan.client.kubeconfig import Connection
from sampan.client.rest import RestClient
from sampan.cmd.cluster import component
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.schedulers import configuration_in, scheduler_of
from sampan.cmd.settings import ElectionChoices, SchedulerProcessSettings
from sampan.core.clock import Clock, SystemClock
from sampan.core.metrics import Metrics
from sampan.scheduler.settings import Configuration


def run(settings: SchedulerProcessSettings) -> int:
    clock = SystemClock()
    duty = Scheduling(settings, clock)
    return component.run(settings.component, duty, Progress(sys.stdout, clock))


class Scheduling:
    name = "kube-scheduler"

    def __init__(self, settings: SchedulerProcessSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._configuration = Configuration()

    def prepare(self, connection: Connection) -> None:
        self._configuration = configuration_in(self._settings.config, "--config")

    def election(self) -> ElectionChoices:
        """Flags win over the file, as upstream."""
        written = self._configuration.election
        return component.settled(
            self._settings.component.election,
            ElectionChoices(
                written.elects, written.namespace, written.name,
                written.lease_seconds, written.renew_seconds, written.retry_seconds,
            ),
        )  # fmt: skip

    async def work(self, client: RestClient, metrics: Metrics) -> None:
        await scheduler_of(self._configuration, client, self._clock, metrics, random.Random()).run()

"""Every recorded life, by name."""

from tests.support.workload_lives.scenarios import (
    access,
    autoscaling,
    basics,
    cron_jobs,
    deployments,
    devices,
    garbage,
    jobs,
    nodes,
    scheduling,
    services,
    sets,
    volumes,
)
from tests.support.workload_lives.steps import Life

_PARTS = (
    basics, jobs, cron_jobs, deployments, sets, scheduling, nodes, volumes, garbage, access,
    services, devices, autoscaling,
)  # fmt: skip
LIVES: dict[str, Life] = {}
for part in _PARTS:
    assert not LIVES.keys() & part.LIVES.keys(), part
    LIVES |= part.LIVES

"""Every recorded life, by name."""

from tests.support.workload_lives.scenarios import basics
from tests.support.workload_lives.steps import Life

LIVES: dict[str, Life] = {**basics.LIVES}

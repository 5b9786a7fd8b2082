"""The scenario of simulated nodes, as `--simulated-scenario` names it.

Job: file → rules, or one sentence with everything that is wrong with it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.errors import CannotStart, reason_of

if TYPE_CHECKING:
    from sampan.kubelet.simulated.scenario import Scenario

FLAG = "--simulated-scenario"
HELP = (
    "how simulated pods behave: timing, exits, logs, probes and failures by selector "
    "(docs/simulated.md); for example {apiVersion: simulated.sampan.dev/v1, kind: Scenario, "
    "rules: [{selector: {matchLabels: {app: web}}, share: 0.1, script: {start-seconds: 2, "
    "exit-after-seconds: 30, exit-code: 1}}]}"
)


def scenario_in(path: str) -> "Scenario":
    """Raises CannotStart; no path: nothing but the end of Jobs is scripted."""
    # Only for simulated nodes, and YAML takes its time.
    from sampan.api.configuration import BadConfiguration
    from sampan.kubelet.simulated.scenario import NOTHING, scenario_of, with_ends_of_jobs

    if not path:
        return with_ends_of_jobs(NOTHING)
    import yaml

    try:
        return with_ends_of_jobs(scenario_of(yaml.safe_load(Path(path).read_text())))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotStart(f"{FLAG} {path}: {reason_of(error)}") from error
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{FLAG} {path}:{problems}") from error
